"""Whether one side is so many times as fast as another: from rounds of samples to an interval and a verdict.

In each round every side had one turn, so that what drifts slowly (temperature, clocks) meets all of them alike; each
second round went through them in the opposite order, for who comes after a side that draws much power is slower for a
while. So a ratio is taken within two such rounds (a lap), and the laps say how far it can be trusted.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from statistics import fmean, median
from typing import TypeVar

import torch

T = TypeVar("T")

RESAMPLES = 1000
CONFIDENCE = 0.99

SYSTEMATIC = 0.003
"""What no number of rounds shows: how far (relative) the ratio moves with where memory lies and with how long a process
has run. `benchmarks/speed.py` measures it: up to 0.12 % between processes on one card, and 0.2 % between the first
regrade of a process and later ones. No interval is narrower than this, on each side."""

SLOW = 0.85
"""A side whose clock reads less than this part of its own median over the rounds was throttled in that round."""

LEAST_ROUNDS = 6

NARROW = 0.01  # rounds are taken until chance moves the ratio by no more than this (relative), where the budget allows


class Verdict(StrEnum):
    """Whether a ratio reaches a threshold."""

    PASS = "pass"
    FAIL = "fail"
    TOO_CLOSE = "too close to call"


class Unmeasurable(ValueError):
    """Too few rounds are worth anything; the message says why."""


@dataclass(frozen=True)
class Round:
    """One turn of each side: `seconds` of one call, by side, a sample for each replay. `sm_mhz` is the lowest clock
    that was read in the side's turn (None: unknown); `throttled` names the reasons for which the card was throttled, if
    it was."""

    seconds: Mapping[str, tuple[float, ...]]
    sm_mhz: Mapping[str, int | None] = field(default_factory=dict)
    throttled: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ratio:
    """How many times as fast as the baseline a side is: above 1 is faster. The truth lies in [low, high], with 99 % and
    the systematic floor. `rounds` were used and `discarded` were not."""

    value: float
    low: float
    high: float
    rounds: int
    discarded: int

    def beside(self, other: Ratio) -> Ratio:
        """How many times as fast as `other` is, where both were compared with the same baseline."""
        value, low, high = self.value / other.value, self.low / other.high, self.high / other.low
        return replace(self, value=value, low=low, high=high)


def decide(ratio: Ratio, at_least: float) -> Verdict:
    """Whether `ratio` reaches `at_least`, as far as its interval can say."""
    if ratio.low >= at_least:
        return Verdict.PASS
    return Verdict.FAIL if ratio.high < at_least else Verdict.TOO_CLOSE


def ratio(rounds: Sequence[Round], baseline: str, side: str = "student") -> Ratio:
    """How many times as fast as `baseline` the `side` was: of a round the ratio of median times, of a lap the mean, of
    all laps the middle. Raises Unmeasurable where throttling leaves fewer than `LEAST_ROUNDS`."""
    good = kept(rounds)
    each = [median(r.seconds[baseline]) / median(r.seconds[side]) for r in good]
    ratios = [math.sqrt(there * back) for there, back in laps(each)]
    value = middle(ratios)
    low, high = interval(ratios)
    return Ratio(
        value=value, low=value * (1 - math.hypot(1 - low / value, SYSTEMATIC)),
        high=value * (1 + math.hypot(high / value - 1, SYSTEMATIC)), rounds=len(good),
        discarded=len(rounds) - len(good),
    )  # fmt: skip


def seconds(rounds: Sequence[Round], side: str) -> float:
    """The typical device seconds of one call: the median over rounds of its medians. Raises Unmeasurable, too."""
    return median(median(r.seconds[side]) for r in kept(rounds))


def kept(rounds: Sequence[Round]) -> list[Round]:
    """The rounds of laps without throttling. Raises Unmeasurable where there are fewer than `LEAST_ROUNDS`."""
    sides = {side for r in rounds for side in r.sm_mhz}
    readings = {side: [mhz for r in rounds if (mhz := r.sm_mhz.get(side)) is not None] for side in sides}
    usual = {side: median(values) for side, values in readings.items() if values}
    good = [r for lap in laps(rounds) if not any(r.throttled or _slow(r, usual) for r in lap) for r in lap]
    if len(good) >= LEAST_ROUNDS:
        return good
    reasons = sorted({reason for r in rounds for reason in r.throttled}) or ["its clock fell"]
    raise Unmeasurable(
        f"{len(good)} of {len(rounds)} rounds can be used, and {LEAST_ROUNDS} are needed"
        + (f": the card slowed itself down ({', '.join(reasons)})" if len(good) < len(rounds) else "")
    )


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Where the middle of `values` lies with `CONFIDENCE`: a bootstrap, the same at every call. Few values show too
    little of how far apart they could be: the interval is widened by about what Student's t is wider than the normal
    distribution."""
    if len(values) == 1:
        return values[0], values[0]
    cut = len(values) // 4
    drawn = torch.tensor(values, dtype=torch.float64)[_resamples(len(values))].sort(1).values
    found = drawn[:, cut : len(values) - cut].mean(1).sort().values.tolist()  # the middle of each
    outside = round((1 - CONFIDENCE) / 2 * RESAMPLES)
    centre, wider = middle(values), 1 + 4 / len(values)
    return centre - wider * (centre - found[outside]), centre + wider * (found[-1 - outside] - centre)


@functools.lru_cache(maxsize=4)
def _resamples(count: int) -> torch.Tensor:
    """Which of `count` values are drawn, with replacement, [RESAMPLES, count]: the same at every call."""
    return torch.randint(count, (RESAMPLES, count), generator=torch.Generator().manual_seed(count))


def middle(values: Sequence[float]) -> float:
    """The mean of the middle half: robust like the median, but it does not jump between two modes."""
    cut = len(values) // 4
    return fmean(sorted(values)[cut : len(values) - cut])


def settled(thresholds: Mapping[str, Sequence[float]]) -> Callable[[Sequence[Round]], bool]:
    """A rule for when to stop measuring, for thresholds by the name of their baseline. Enough is known once the
    interval of every ratio is narrow, and has none of its thresholds inside."""

    def is_settled(rounds: Sequence[Round]) -> bool:
        try:
            ratios = {baseline: ratio(rounds, baseline) for baseline in thresholds}
        except Unmeasurable:
            return False
        if any(r.high - r.low > 2 * math.hypot(NARROW, SYSTEMATIC) * r.value for r in ratios.values()):
            return False
        asked = [decide(ratios[baseline], t) for baseline, several in thresholds.items() for t in several]
        return Verdict.TOO_CLOSE not in asked

    return is_settled


def laps(values: Sequence[T]) -> list[tuple[T, T]]:
    """The first two, the next two, and so on; a last one that has no other is left out."""
    return list(zip(values[::2], values[1::2], strict=False))


def _slow(taken: Round, usual: Mapping[str, float]) -> bool:
    return any(mhz is not None and mhz < SLOW * usual[side] for side, mhz in taken.sm_mhz.items())


BYTES_TOLERANCE = 0.05  # a ceiling is the best of a few kernels, and another kernel may be a little better

FLOPS_TOLERANCE = 0.25
"""More for arithmetic: a card under its power limit multiplies simple numbers faster than random ones, and short bursts
faster than long ones (seen on an H200: 13 % between zeros and random numbers)."""


@dataclass(frozen=True)
class Ceilings:
    """The best rates that were measured on a card: bytes read plus written a second, and operations a second by dtype
    (a multiplication and an addition are two; "tf32" is float32 with inputs rounded to TF32). `l2_bytes` may still be
    on their way to memory when a call ends. `by` says which kernel was the best at each."""

    bytes_per_second: float
    flops_per_second: Mapping[str, float]
    l2_bytes: int = 0
    by: Mapping[str, str] = field(default_factory=dict)

    def rate(self, dtype: str) -> float | None:
        """The best operations a second on numbers of `dtype` by any unit, or None where it was not measured."""
        names = ("float32", "tf32") if dtype == "float32" else (dtype,)
        return max((self.flops_per_second[n] for n in names if n in self.flops_per_second), default=None)


def impossible(
    seconds: float, nbytes: float, flops: float, ceilings: Ceilings, *, dtype: str = "float32", calls: int = 1
) -> str | None:
    """Why no kernel can take `seconds` for a call that must move `nbytes` and do `flops` operations, or None if one
    can. `calls` is how many calls with inputs of their own were timed together: what the last of them wrote may still
    be in the L2 cache, so that much is forgiven once."""
    must_move = max(nbytes - ceilings.l2_bytes / calls, 0)
    best = ceilings.bytes_per_second
    if must_move > seconds * best * (1 + BYTES_TOLERANCE):
        return (
            f"the call must read and write {_si(nbytes)}B at least; in {_time(seconds)} that is "
            f"{_si(nbytes / seconds)}B/s, and this card moves {_si(best)}B/s"
        )
    peak = ceilings.rate(dtype)
    if peak and flops > seconds * peak * (1 + FLOPS_TOLERANCE):
        return (
            f"the call needs {_si(flops)}FLOP; in {_time(seconds)} that is {_si(flops / seconds)}FLOP/s, "
            f"and this card does {_si(peak)}FLOP/s in {dtype}"
        )
    return None


def _si(value: float) -> str:
    for prefix, size in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {prefix}"
    return f"{value:.3g} "


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} us"
