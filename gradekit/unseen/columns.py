"""Size terms of many calls at once, as columns of whole numbers, and of ranges of sizes, as intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gradekit.arithmetic import OF_TWO, next_power_of_2
from gradekit.size_terms import Algebra

Numbers = Tensor | int
"""One number for each of many calls (int64), or one for all."""

_POWERS = torch.tensor([1 << k for k in range(62)])


class Columns(Algebra):
    """One number for each of many calls, or one for all; what is divided by zero is itself."""

    def applied(self, symbol: str, a: Any, b: Any) -> Any:
        """See `Algebra`."""
        if symbol not in ("//", "%") or isinstance(a, int) and isinstance(b, int):
            return super().applied(symbol, a, b)
        quotient = floor_divided(a, b)
        return quotient if symbol == "//" else a - quotient * torch.where(torch.as_tensor(b) == 0, 1, b)

    def power(self, a: Any) -> Any:
        """See `Algebra`."""
        if isinstance(a, int):
            return super().power(a)
        return torch.where(a > 0, _POWERS[torch.searchsorted(_POWERS, a).clamp(max=61)], 0)


COLUMNS = Columns()


def floor_divided(a: Any, b: Any) -> Any:
    """a // b; where b is 0, a."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b if b else a
    divisor = torch.as_tensor(b)
    return torch.div(torch.as_tensor(a), torch.where(divisor == 0, 1, divisor), rounding_mode="floor")


@dataclass(frozen=True)
class Bounds:
    """A whole number from `low` to `high`."""

    low: int
    high: int

    def __add__(self, other: Any) -> Bounds:
        return _at_ends("+", self, other)

    def __sub__(self, other: Any) -> Bounds:
        return _at_ends("-", self, other)

    def __mul__(self, other: Any) -> Bounds:
        return _at_ends("*", self, other)

    def __rsub__(self, other: Any) -> Bounds:
        return _at_ends("-", other, self)

    __radd__, __rmul__ = __add__, __mul__


def bounds(value: Any) -> Bounds:
    """Of a number, too."""
    return value if isinstance(value, Bounds) else Bounds(int(value), int(value))


def _at_ends(symbol: str, a: Any, b: Any) -> Bounds:
    """Of sums, differences, products, and quotients by what is positive, the ends are at the ends of both."""
    one, other = bounds(a), bounds(b)
    ends = [OF_TWO[symbol](x, y) for x in (one.low, one.high) for y in (other.low, other.high)]
    return Bounds(min(ends), max(ends))


class Intervals(Algebra):
    """What numbers can be: a relation gives the ways that it can go. That spares the solver most of its questions (a
    product of sizes from 1 on is never 0)."""

    def number(self, value: int) -> Bounds:
        """See `Algebra`."""
        return bounds(value)

    def applied(self, symbol: str, a: Any, b: Any) -> Bounds | None:
        """See `Algebra`."""
        b = bounds(b)
        if symbol in ("//", "%") and b.low <= 0:
            return None
        return Bounds(0, b.high - 1) if symbol == "%" else _at_ends(symbol, a, b)

    def power(self, a: Any) -> Bounds:
        """See `Algebra`."""
        return Bounds(next_power_of_2(bounds(a).low), next_power_of_2(bounds(a).high))

    def compared(self, relation: str, a: Any, b: Any) -> set[bool]:
        """See `Algebra`."""
        a, b = bounds(a), bounds(b)
        if relation == "==":
            possible, certain = a.low <= b.high and b.low <= a.high, a.low == a.high == b.low == b.high
        else:
            possible, certain = OF_TWO[relation](a.low, b.high), OF_TWO[relation](a.high, b.low)
        return {way for way, may in ((True, possible), (False, not certain)) if may}


INTERVALS = Intervals()
