"""Calls with numbers that a submission's text makes special: fractions that it compares a scalar with, and sizes that
stand in its tables."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import torch

from gradekit.domain import ScalarDomain
from gradekit.inputs.draws import Draws
from gradekit.unseen.further import FurtherCall, fits, made, rank_of
from gradekit.unseen.host_branches import TracedForm
from gradekit.unseen.scope import BEYOND, LARGEST, CallScope, fractions

CLOSE, SMALLEST = 2.0**-10, 1e-6
"""How far beside a fraction, as a share of it, and the smallest that is tried."""

DIGITS = 7
"""Numbers that differ behind so many digits are one that was rounded to float32."""

MOST_NUMBERS = 6
SIZES = (512, 1024, 2048, 4096)


def near_fractions(draws: Draws, forms: Sequence[TracedForm], numbers: Sequence[float]) -> Iterator[FurtherCall]:
    """Calls with a fraction in the middle of two numbers that follow each other, then a little beside each number, each
    sum and each difference of two, and the numbers themselves, in the scalar's range.

    They have many elements, since what is done too often shows in many alone.
    """
    form = next((one for one in forms if fits(draws, one) and one.elements), None)
    close = _close_to([n for n in numbers if 0 < n < 1])
    values = [(scalar.name, value) for scalar in fractions(draws) for value in close if _has(scalar, value)]
    sizes = _many(CallScope(draws, rank_of(draws, form), True, BEYOND)) if form is not None and values else {}
    for turn, (name, value) in enumerate(dict.fromkeys(values) if form is not None else ()):
        told = f"{name} is {value:.6g}, close to a number that it is compared with"
        yield FurtherCall(made(draws, form, sizes, turn, {name: value}), told)  # type: ignore[arg-type]


def _has(scalar: ScalarDomain, value: float) -> bool:
    return max(scalar.least or 0.0, SMALLEST) <= value <= (scalar.most or 0.0)


def _close_to(numbers: Sequence[float]) -> list[float]:
    few = list(dict.fromkeys(round(n, DIGITS) for n in numbers))[:MOST_NUMBERS]
    sums = [a + sign * b for a in few for b in few if a > b for sign in (1, -1)]
    beside = dict.fromkeys(round(n, DIGITS) for n in (*few, *sums))
    between = [(a + b) / 2 for a, b in itertools.pairwise(sorted(few))]
    return [*between, *(number * (1 + side * CLOSE) for number in beside for side in (1, -1)), *few]


def _many(scope: CallScope) -> dict[str, int]:
    """Sizes of a call with as many elements as may be."""
    return max((scope.near(size, LARGEST) for size in SIZES), key=scope.count)


def looked_up(draws: Draws, forms: Sequence[TracedForm], keys: Sequence[tuple[int, ...]]) -> Iterator[FurtherCall]:
    """Calls whose sizes stand in a table of the text: a number for each dimension in turn, several for dimensions that
    follow each other."""
    form = next((one for one in forms if fits(draws, one) and one.elements), None)
    if form is None or not keys:
        return
    scope = CallScope(draws, rank_of(draws, form), True, BEYOND)
    base = {name: scope.nearest(name, 7 + place) for place, name in enumerate(scope.names)}
    rows = {}
    for key in keys:
        for first in range(len(scope.sizes) - len(key) + 1):
            row = base | dict(zip(scope.sizes[first:], key, strict=False))
            rows[tuple(row.items())] = row
    columns = {name: torch.tensor([row[name] for row in rows.values()]) for name in base}
    allowed = scope.allows(columns).tolist() if rows and columns else []
    for turn, row in enumerate(itertools.compress(rows.values(), allowed)):
        told = ", ".join(f"{name} is {row[name]:,}" for name in scope.sizes) + ", sizes of a table of the submission"
        yield FurtherCall(made(draws, form, row, turn, {}), told)
