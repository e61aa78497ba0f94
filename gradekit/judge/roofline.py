"""What a card allows: a measured time beside the least that its memory and its arithmetic need.

Pure: the ceilings come from whoever measured them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

BYTES_TOLERANCE = 0.05
"""A ceiling is the best of a few kernels, and another kernel may be a little better."""

FLOPS_TOLERANCE = 0.25
"""More for arithmetic: a card under its power limit multiplies simple numbers faster than random ones, and short bursts
faster than long ones (seen on an H200: 13 % between zeros and random numbers)."""


@dataclass(frozen=True)
class Ceilings:
    """The best rates that were measured on a card: bytes read plus written a second, and operations a second by dtype
    (a multiplication and an addition are two; "tf32" is float32 with inputs rounded to TF32).

    `l2_bytes` may still be on their way to memory when a call ends. `by` says which kernel was the best at each.
    """

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
    """Why no kernel can take `seconds` for a call that must move `nbytes` and do
    `flops` operations, or None if one can.

    `calls` is how many calls with inputs of their own were timed together: what the last of them wrote may still be in
    the L2 cache, so that much is forgiven once.
    """
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
