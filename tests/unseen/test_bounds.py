"""Ranges leave open whatever sizes within their ranges can do."""

from __future__ import annotations

import itertools
import random

import pytest

from gradekit.origins import Condition
from gradekit.prove.terms import Term, var
from gradekit.size_terms import RELATIONS, Leaf, evaluated, holds
from gradekit.unseen.wants import can_go

SIZES: list[Leaf] = [("size", 0, 0), ("size", 0, 1)]


def test_a_product_of_sizes_from_one_on_is_never_zero() -> None:
    terms = [*SIZES, ("*", 0, 1), ("number", 0)]
    ranges = {SIZES[0]: size(0, 1, 9), SIZES[1]: size(1, 1, 1 << 20)}
    assert not can_go(terms, ranges, Condition(2, "==", 3, False), True)
    assert can_go(terms, ranges, Condition(2, "==", 3, False), False)
    assert can_go(terms, ranges | {SIZES[0]: size(0, 0, 9)}, Condition(2, "==", 3, False), True)


@pytest.mark.parametrize("relation", RELATIONS)
def test_no_way_that_some_sizes_go_is_ruled_out(relation: str) -> None:
    """Of hundreds of random expressions, for all sizes of small ranges; and some ways are ruled out"""
    chance, ruled_out = random.Random(7), 0
    for _ in range(300):
        terms: list[Leaf] = [*SIZES, ("number", chance.randrange(-4, 9)), ("number", chance.randrange(9))]
        for number in range(4, 8):
            symbol = chance.choice(("+", "-", "*", "//", "%", "next_power_of_2"))
            operands = chance.randrange(number), chance.randrange(number)
            terms.append((symbol, *operands[: 1 if symbol == "next_power_of_2" else 2]))
        lows = [chance.randrange(4) for _ in SIZES]
        ranges = {one: (low, low + chance.randrange(3)) for one, low in zip(SIZES, lows, strict=True)}
        condition = Condition(chance.randrange(8), relation, chance.randrange(8), True)
        leaves = {leaf: size(number, *ends) for number, (leaf, ends) in enumerate(ranges.items())}
        for way in (True, False):
            if not can_go(terms, leaves, condition, way):
                ruled_out += 1
                assert way not in ways(terms, condition, ranges)
    assert ruled_out > 50


def size(number: int, low: int, high: int) -> Term:
    """A size within its range."""
    return var(f"n{number}", low, high)


def ways(terms: list[Leaf], condition: Condition, ranges: dict[Leaf, tuple[int, int]]) -> set[bool]:
    """Which ways the comparison goes."""
    found = set()
    for sizes in itertools.product(*(range(low, high + 1) for low, high in ranges.values())):
        values = evaluated(terms, dict(zip(ranges, sizes, strict=True)))
        held = holds(condition, values)
        found |= set() if held is None else {held}
    return found
