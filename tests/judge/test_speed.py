"""Claims about the judge of speed: on rounds recorded on a card, and on series made up to be difficult."""

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from gradekit.judge.speed import (
    LEAST_ROUNDS,
    SYSTEMATIC,
    Ceilings,
    Round,
    Unmeasurable,
    Verdict,
    decide,
    impossible,
    kept,
    laps,
    ratio,
    seconds,
    settled,
)

RECORDED = {
    name: [Round({side: tuple(s) for side, s in r["seconds"].items()}, r["sm_mhz"]) for r in rounds]
    for name, rounds in json.loads(Path(__file__).with_name("recorded_rounds.json").read_text()).items()
}
"""Rounds of a student's kernel and torch's on an H200, each side in a process of its own."""

RATIOS = {"softmax of 128 rows": 1.963, "softmax of 4096 rows": 1.204, "matmul under the power limit": 0.841}
"""What other pairs of processes measured for the same kernels."""


def series(
    truth: float = 1.5, rounds: int = 16, *, seed: int = 0, wobble: float = 0.002, jitter: float = 0.01,
    student: float = 20e-6, slowdown: Callable[[int], float] = lambda number: 1.0,
) -> list[Round]:
    """Rounds whose ratio is `truth`: `wobble` from round to round, `jitter` from sample to sample (both relative), and
    both sides slower by a factor that depends on the round."""
    chance = random.Random(seed)

    def side(usual: float, number: int) -> tuple[float, ...]:
        at = usual * slowdown(number) * chance.gauss(1, wobble)
        return tuple(at * chance.gauss(1, jitter) for _ in range(9))

    return [Round({"student": side(student, n), "eager": side(truth * student, n)}) for n in range(rounds)]


def contains(rounds: Sequence[Round], truth: float) -> bool:
    found = ratio(rounds, "eager")
    return found.low <= truth <= found.high


# --- the ratio and its interval --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RATIOS)
def test_rounds_recorded_on_a_card_give_the_ratio_that_other_processes_measured(name: str) -> None:
    assert contains(RECORDED[name], RATIOS[name])
    assert ratio(RECORDED[name], "eager").value == pytest.approx(RATIOS[name], rel=5e-3)


def test_the_ratio_over_another_side_is_the_inverse() -> None:
    rounds = series(1.25)
    assert ratio(rounds, "student", "eager").value == pytest.approx(1 / ratio(rounds, "eager").value, rel=1e-3)


def test_samples_without_any_noise_still_leave_the_systematic_floor() -> None:
    found = ratio([Round({"student": (1e-5,), "eager": (2e-5,)})] * 16, "eager")
    assert found.value == 2.0
    assert (found.low, found.high) == pytest.approx((2 * (1 - SYSTEMATIC), 2 * (1 + SYSTEMATIC)))


def test_the_interval_contains_the_truth_nearly_always() -> None:
    missed = [seed for seed in range(200) if not contains(series(1.3, seed=seed, wobble=0.01), 1.3)]
    assert len(missed) <= 4  # 99 % are promised


def test_more_rounds_make_the_interval_narrower() -> None:
    few, many = (ratio(series(rounds=n, wobble=0.02), "eager") for n in (8, 80))
    assert many.high - many.low < 0.5 * (few.high - few.low)


def test_typical_seconds_are_those_of_the_rounds_that_count() -> None:
    rounds = [
        *series(student=10e-6), *(Round({"student": (1.0,), "eager": (1.0,)}, {}, ("too hot",)) for _ in range(9)),
    ]
    assert seconds(rounds, "student") == pytest.approx(10e-6, rel=0.01)


# --- noise ---------------------------------------------------------------------------------------------------------


def test_a_slow_drift_of_both_sides_does_not_move_the_ratio() -> None:
    assert contains(series(1.5, slowdown=lambda n: 1 + 0.05 * n), 1.5)


def test_one_round_that_is_far_off_does_not_move_the_ratio() -> None:
    rounds = series(1.5)
    rounds[5] = Round({"student": (60e-6,) * 9, "eager": (30e-6,) * 9})
    assert contains(rounds, 1.5)
    assert ratio(rounds, "eager").value == pytest.approx(1.5, rel=0.005)


def test_a_side_that_is_slower_whenever_it_comes_first_has_one_ratio() -> None:
    rounds = [
        Round({**r.seconds, "student": tuple(s * (1.08 if n % 2 else 1.0) for s in r.seconds["student"])})
        for n, r in enumerate(series(1.5, 16, wobble=0.001, jitter=0.002))
    ]
    found = ratio(rounds, "eager")
    assert found.value == pytest.approx(1.5 / 1.08**0.5, rel=0.002)
    assert found.high - found.low < 0.01 * found.value


# --- a card that holds back ------------------------------------------------------------------------------------------


def with_clock(rounds: Sequence[Round], mhz: Sequence[int]) -> list[Round]:
    return [Round(r.seconds, {"student": m, "eager": m}) for r, m in zip(rounds, mhz, strict=True)]


def test_a_stretch_in_which_the_card_was_throttled_is_discarded() -> None:
    rounds = series(1.5, 12)
    hot = [Round({"student": (90e-6,), "eager": (31e-6,)}, {}, ("too hot (hardware)",)) for _ in range(6)]
    found = ratio([*rounds[:6], *hot, *rounds[6:]], "eager")
    assert (found.rounds, found.discarded) == (12, 6)
    assert found.value == ratio(rounds, "eager").value


def test_a_round_whose_clock_fell_is_discarded_though_no_reason_was_read() -> None:
    rounds = with_clock(series(1.5, 10), [1980] * 8 + [1200, 1300])
    assert kept(rounds) == rounds[:8]


def test_with_a_round_goes_the_other_one_of_its_lap() -> None:
    rounds = with_clock(series(1.5, 10), [1980] * 7 + [1200, 1980, 1980])
    assert kept(rounds) == [*rounds[:6], *rounds[8:]]


def test_a_clock_that_moves_a_little_under_a_power_limit_is_no_throttling() -> None:
    rounds = with_clock(series(1.5, 6), [1395, 1545, 1470, 1440, 1530, 1410])
    assert kept(rounds) == rounds


def test_a_side_is_compared_with_its_own_usual_clock() -> None:
    rounds = [Round(r.seconds, {"student": 1980, "eager": 1400}) for r in series()]
    assert kept(rounds) == rounds


def test_a_card_that_held_back_nearly_always_measures_nothing_and_says_why() -> None:
    hot = [Round(r.seconds, r.sm_mhz, ("power brake",)) for r in series(rounds=10)]
    with pytest.raises(Unmeasurable, match=r"4 of 14 rounds can be used, and 6 are needed.*power brake"):
        ratio([*hot, *series(rounds=4)], "eager")


# --- verdicts --------------------------------------------------------------------------------------------------------


def test_a_ratio_passes_fails_or_is_too_close_by_where_its_interval_lies() -> None:
    found = ratio(series(1.5), "eager")
    assert decide(found, 1.45) is Verdict.PASS
    assert decide(found, 1.55) is Verdict.FAIL
    assert decide(found, found.value) is Verdict.TOO_CLOSE


def test_a_threshold_inside_of_the_interval_asks_for_more_rounds() -> None:
    rounds = series(1.5)
    assert settled({"eager": [1.4, 1.6]})(rounds)
    assert not settled({"eager": [1.4, 1.5]})(rounds)


def test_a_wide_interval_or_none_asks_for_more_rounds_even_far_from_every_threshold() -> None:
    assert not settled({"eager": [9.0]})(series(1.5, wobble=0.05))
    assert not settled({"eager": []})(series(rounds=LEAST_ROUNDS - 1))


def resampled(rounds: Sequence[Round], seed: int, faster: float) -> list[Round]:
    """As many rounds drawn from recorded ones, with a student that is so many times as fast."""
    drawn = [r for lap in random.Random(seed).choices(laps(rounds), k=len(rounds) // 2) for r in lap]
    return [Round({**r.seconds, "student": tuple(s / faster for s in r.seconds["student"])}, r.sm_mhz) for r in drawn]


@pytest.mark.parametrize("name", RATIOS)
def test_recorded_rounds_drawn_again_keep_their_verdict_two_percent_from_a_threshold(name: str) -> None:
    threshold = ratio(RECORDED[name], "eager").value
    for seed in range(20):
        assert decide(ratio(resampled(RECORDED[name], seed, 1.02), "eager"), threshold) is not Verdict.FAIL
        assert decide(ratio(resampled(RECORDED[name], seed, 0.98), "eager"), threshold) is not Verdict.PASS


# --- claims about what a card allows ----------------------------------------------------------------------------------


CARD = Ceilings(4e12, {"float16": 8e14, "float32": 5e13, "tf32": 4e14}, l2_bytes=60_000_000)


def test_what_is_impossible_says_which_ceiling_would_be_broken() -> None:
    moved = impossible(40e-6, 300e6, 0, CARD)
    assert (
        moved == "the call must read and write 300 MB at least; in 40 us that is 7.5 TB/s, and this card moves 4 TB/s"
    )
    done = impossible(1e-3, 1e6, 1.2e12, CARD, dtype="float16")
    assert done == "the call needs 1.2 TFLOP; in 1 ms that is 1.2 PFLOP/s, and this card does 800 TFLOP/s in float16"


FAST = 300e6 / 4.6e12
WITHOUT_CACHE = Ceilings(4e12, {})


@pytest.mark.parametrize(
    ("seconds", "moved", "flops", "card", "more", "is_possible"),
    [
        (100e-6, 300e6, 1e9, CARD, {}, True),
        (75e-6 / 1.04, 300e6, 0, WITHOUT_CACHE, {}, True),
        (75e-6 / 1.06, 300e6, 0, WITHOUT_CACHE, {}, False),
        (FAST, 300e6, 0, CARD, {"calls": 1}, True),
        (FAST, 300e6, 0, CARD, {"calls": 4}, False),
        (1e-6, 1e6, 0, CARD, {"calls": 4}, True),
        (1e-3, 0, 3e11, CARD, {"dtype": "float32"}, True),
        (1e-9, 0, 1e15, CARD, {"dtype": "int8"}, True),
        (1e-6, 0, 0, CARD, {}, True),
    ],
    ids=["above the floor", "a ceiling beaten by a little", "and by more", "what may lie in the cache, once", "not each time",
         "small calls", "float32 as tf32", "no ceiling was measured", "nothing to do"],
)  # fmt: skip
def test_a_time_is_possible_above_what_the_card_allows(
    seconds: float, moved: float, flops: float, card: Ceilings, more: dict[str, Any], is_possible: bool
) -> None:
    assert (impossible(seconds, moved, flops, card, **more) is None) is is_possible
