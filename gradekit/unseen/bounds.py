"""What a comparison of host code can be at all, from the ranges of sizes: that spares the solver most of its questions
(a product of sizes from 1 on is never 0)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gradekit.origins import Condition
from gradekit.unseen.evaluation import COMPARE, LEAVES, OPERATIONS, Leaf, next_power_of_2


@dataclass(frozen=True)
class Bounds:
    """A whole number from `low` to `high`."""

    low: int
    high: int

    def __add__(self, other: Any) -> Bounds:
        return _together(self, other, lambda a, b: a + b)

    def __sub__(self, other: Any) -> Bounds:
        return _together(self, other, lambda a, b: a - b)

    def __mul__(self, other: Any) -> Bounds:
        return _together(self, other, lambda a, b: a * b)

    def __rsub__(self, other: Any) -> Bounds:
        return bounds(other) - self

    __radd__, __rmul__ = __add__, __mul__


def bounds(value: Any) -> Bounds:
    """Of a number, too."""
    return value if isinstance(value, Bounds) else Bounds(int(value), int(value))


def _together(a: Any, b: Any, apply: Any) -> Bounds:
    """Of sums, differences, products, and quotients by what is positive, the ends are at the ends of both."""
    one, other = bounds(a), bounds(b)
    ends = [apply(x, y) for x in (one.low, one.high) for y in (other.low, other.high)]
    return Bounds(min(ends), max(ends))


def can_go(terms: Sequence[Leaf], condition: Condition, way: bool, leaves: Mapping[Leaf, Any]) -> bool:
    """Whether bounds leave open that the comparison goes this way."""
    known: list[Bounds | None] = []
    for term in terms:
        known.append(_bounds_of(term, known, leaves))
    if not (0 <= condition.left < len(known) > condition.right >= 0):
        return True
    left, right = known[condition.left], known[condition.right]
    if left is None or right is None or condition.relation not in COMPARE:
        return True
    if condition.relation == "==":
        return left.low <= right.high and right.low <= left.high if way else not _same(left, right)
    equal = condition.relation == "<="
    return left.low < right.high + equal if way else left.high + (not equal) > right.low


def _same(left: Bounds, right: Bounds) -> bool:
    return left.low == left.high == right.low == right.high


def _bounds_of(term: Leaf, known: Sequence[Bounds | None], leaves: Mapping[Leaf, Any]) -> Bounds | None:
    match term:
        case ("number", int(value)):
            return bounds(value)
        case (str(kind), *_) if kind in LEAVES:
            return bounds(leaves[term]) if term in leaves else None
        case ("next_power_of_2", int(a)) if 0 <= a < len(known):
            n = known[a]
            return Bounds(next_power_of_2(n.low), next_power_of_2(n.high)) if n is not None else None
        case (str(symbol), int(a), int(b)) if symbol in OPERATIONS and 0 <= a < len(known) > b >= 0:
            left, right = known[a], known[b]
            return _applied(symbol, left, right) if left is not None and right is not None else None
    return None


def _applied(symbol: str, left: Bounds, right: Bounds) -> Bounds | None:
    if symbol in "+-*":
        return left + right if symbol == "+" else left - right if symbol == "-" else left * right
    if right.low <= 0:
        return None
    return _together(left, right, lambda a, b: a // b) if symbol == "//" else Bounds(0, right.high - 1)
