"""Parametrized sets too large for each run: a sample is tried every time, `make test-slow` tries the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def sampled(cases: Iterable[Any], name: Callable[[Any], str], often: Callable[[int, Any], bool]) -> list[Any]:
    """Each case as a parameter with its name; those that `often` (of their number and themselves) leaves out are slow."""
    return [
        pytest.param(case, id=name(case), marks=[] if often(number, case) else [pytest.mark.slow])
        for number, case in enumerate(cases)
    ]


def one_in(count: int) -> Callable[[int, Any], bool]:
    """Every so-manieth case, the first among them."""
    return lambda number, _: number % count == 0
