"""Bounds leave open whatever sizes within their ranges can do."""

from __future__ import annotations

import itertools
import random

import pytest

from gradekit.origins import Condition
from gradekit.size_terms import RELATIONS, Leaf, evaluated, holds
from gradekit.unseen.columns import INTERVALS, Bounds

SIZES: list[Leaf] = [("size", 0, 0), ("size", 0, 1)]


def test_a_product_of_sizes_from_one_on_is_never_zero() -> None:
    terms = [*SIZES, ("*", 0, 1), ("number", 0)]
    ranges = {SIZES[0]: Bounds(1, 9), SIZES[1]: Bounds(1, 1 << 20)}
    assert not can_go(terms, Condition(2, "==", 3, False), True, ranges)
    assert can_go(terms, Condition(2, "==", 3, False), False, ranges)
    assert can_go(terms, Condition(2, "==", 3, False), True, ranges | {SIZES[0]: Bounds(0, 9)})


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
        ranges = {size: (low, low + chance.randrange(3)) for size, low in zip(SIZES, lows, strict=True)}
        condition = Condition(chance.randrange(8), relation, chance.randrange(8), True)
        for way in (True, False):
            if not can_go(terms, condition, way, {size: Bounds(*ends) for size, ends in ranges.items()}):
                ruled_out += 1
                assert way not in ways(terms, condition, ranges)
    assert ruled_out > 50


def can_go(terms: list[Leaf], condition: Condition, way: bool, leaves: dict[Leaf, Bounds]) -> bool:
    """Whether intervals leave open that the comparison goes this way."""
    possible = holds(condition, evaluated(terms, leaves, INTERVALS), INTERVALS)
    return possible is None or way in possible


def ways(terms: list[Leaf], condition: Condition, ranges: dict[Leaf, tuple[int, int]]) -> set[bool]:
    """Which ways the comparison goes."""
    found = set()
    for sizes in itertools.product(*(range(low, high + 1) for low, high in ranges.values())):
        values = evaluated(terms, dict(zip(ranges, sizes, strict=True)))
        held = holds(condition, values)
        found |= set() if held is None else {held}
    return found
