"""Counts of random events are allowed to be off as far as chance brings, and no further."""

import math
from fractions import Fraction

import pytest

from gradekit.assignment import beside, get

CHECKS = beside(get("dropout").tests, "test_dropout")


@pytest.mark.parametrize(("trials", "chance"), [(200, Fraction(1, 2)), (200, Fraction(1, 10)), (60, Fraction(999, 1000))])
def test_a_count_is_never_likelier_than_its_bound_says(trials, chance):
    weights = [math.comb(trials, k) * chance**k * (1 - chance) ** (trials - k) for k in range(trials + 1)]
    for count in range(trials + 1):
        tail = weights[count:] if count > trials * chance else weights[: count + 1]
        assert float(sum(tail)) <= math.exp(-CHECKS.surprise(count, trials, float(chance))) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("count", "trials", "chance"), [(5334, 6000, 0.5), (0, 6000, 0.1), (5999, 6000, 1.0), (90, 6000, 0.001)]
)
def test_a_count_that_chance_does_not_explain_is_told(count, trials, chance):
    with pytest.raises(CHECKS.Failure, match=f"{count} of {trials} times"):
        CHECKS.assert_count(count, trials, chance, "It was so")


@pytest.mark.parametrize(
    ("count", "trials", "chance"), [(3200, 6000, 0.5), (1, 6000, 1e-7), (6000, 6000, 1.0), (0, 0, 0.5), (20, 6000, 0.001)]
)
def test_a_count_that_chance_may_bring_is_allowed(count, trials, chance):
    CHECKS.assert_count(count, trials, chance, "It was so")
