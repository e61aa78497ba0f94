"""Parametrized sets too large for each run: a sample is tried every time, `make test-slow` tries the rest."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def sampled(cases: Iterable[Any], name: Callable[[Any], str], often: Callable[[int, Any], bool]) -> list[Any]:
    """Each case as a parameter with its name; a case is slow unless `often(number, case)`."""
    return [
        pytest.param(case, id=name(case), marks=[] if often(number, case) else [pytest.mark.slow])
        for number, case in enumerate(cases)
    ]


def one_in(count: int) -> Callable[[int, Any], bool]:
    """For `sampled`: every `count`-th case, beginning with the first."""
    return lambda number, _: number % count == 0
