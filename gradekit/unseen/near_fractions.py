"""Calls whose fractions (a probability, an epsilon) lie close to numbers that a submission compares: what it does for a
short range of them alone. Pure, nothing is run here."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from gradekit.domain import ScalarDomain
from gradekit.inputs.draws import Draws
from gradekit.unseen.further import FurtherCall, fits, made, rank_of
from gradekit.unseen.host_branches import TracedForm
from gradekit.unseen.scope import BEYOND, CallScope, fractions
from gradekit.unseen.solving import tried

CLOSE = 2.0**-10
"""How far from a number, as a share of it."""

SMALLEST = 1e-6
DIGITS = 7
"""Numbers that differ behind so many digits are one that was rounded to float32."""

MOST_NUMBERS = 6
SIZES = (512, 1024, 2048, 4096)


def near_fractions(
    draws: Draws, forms: Sequence[TracedForm], numbers: Sequence[float], line: int | None
) -> list[FurtherCall]:
    """Calls with a fraction in the middle of two numbers that follow each other, then a little below and a little above
    each number, and each sum and difference of two, in the scalar's range. They have many elements, since what is done
    too often shows in many alone."""
    form = next((one for one in forms if fits(draws, one) and one.elements), None)
    if form is None:
        return []
    close = _close_to(numbers)
    values = [(scalar.name, value) for scalar in fractions(draws) for value in close if _has(scalar, value)]
    sizes = _many(draws, form) if values else {}
    found: list[FurtherCall] = []
    for name, value in dict.fromkeys(values):
        told = f"{name} is {value:.6g}, close to a number that it is compared with"
        found.append(FurtherCall(made(draws, form, sizes, len(found), {name: value}), told, line))
    return found


def _has(scalar: ScalarDomain, value: float) -> bool:
    return max(scalar.least or 0.0, SMALLEST) <= value <= (scalar.most or 0.0)


def _close_to(numbers: Sequence[float]) -> list[float]:
    few = list(dict.fromkeys(round(n, DIGITS) for n in numbers if n > 0))[:MOST_NUMBERS]
    sums = [a + sign * b for a in few for b in few if a > b for sign in (1, -1)]
    beside = dict.fromkeys(round(n, DIGITS) for n in (*few, *sums))
    between = [(a + b) / 2 for a, b in itertools.pairwise(sorted(few))]
    return [*between, *(number * (1 + side * CLOSE) for number in beside for side in (1, -1))]


def _many(draws: Draws, form: TracedForm) -> dict[str, Any]:
    """Sizes that make the largest tensor of those that are tried."""
    scope = CallScope(draws, rank_of(draws, form), True, BEYOND)
    columns = tried(scope, SIZES)
    if not columns:
        return {}
    count = scope.elements(columns) * scope.allows(columns)
    place = int(count.argmax())
    return {name: int(column[place]) for name, column in columns.items()}
