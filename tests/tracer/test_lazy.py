"""An int that is computed where it matters is an int in all that host code does with it."""

from __future__ import annotations

import copy
import math
import operator
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gradekit.tracer import lazy
from gradekit.tracer.lazy import LazyInt, settled

OPERATORS = [operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.truediv, operator.lt, operator.le,
             operator.gt, operator.ge, operator.eq, operator.ne, lazy._choosing(min), lazy._choosing(max)]  # fmt: skip


def never() -> int:
    """What must not be computed."""
    raise AssertionError("computed")


@st.composite
def numbers(draw: Any) -> tuple[int, Any]:
    """An int, and the same as an int or a LazyInt with bounds around it."""
    value, below, above = draw(st.integers(-3, 12)), draw(st.integers(0, 4)), draw(st.integers(0, 4))
    return value, draw(st.sampled_from([value, LazyInt(lambda: value, value - below, value + above)]))


@settings(deadline=None)
@given(numbers(), numbers(), st.sampled_from(OPERATORS))
def test_arithmetic_and_order_are_those_of_ints(a: Any, b: Any, apply: Callable[..., Any]) -> None:
    try:
        expected = apply(a[0], b[0])
    except ZeroDivisionError:
        with pytest.raises(ZeroDivisionError):
            settled(apply(a[1], b[1]))
        return
    found = apply(a[1], b[1])
    assert type(found) is not LazyInt or found.low <= expected <= found.high
    assert settled(found) == expected and type(settled(found)) is type(expected)


def test_what_the_bounds_decide_is_not_computed() -> None:
    minimum, maximum = lazy._choosing(min), lazy._choosing(max)
    occupancy = minimum(65536 // (LazyInt(never, 1, 255) * 32 * 8), 18)
    assert minimum(132 * maximum(1, occupancy), 100) == 100
    assert occupancy and occupancy > 0 and occupancy != 100 and not occupancy > 18


def test_what_they_leave_open_is_computed_once() -> None:
    computed: list[int] = []
    registers = LazyInt(lambda: computed.append(40) or 40, 1, 255)  # type: ignore[func-returns-value]
    assert 132 * (65536 // (registers * 256)) == 792 and registers == 40 and registers < 41
    assert computed == [40]


def test_it_is_an_int_to_whoever_asks_or_copies() -> None:
    number = LazyInt(lambda: 40, 1, 255)
    assert isinstance(number, int) and number.bit_length() == 6 and f"{number:4d}|{number}" == "  40|40"
    assert type(copy.deepcopy(number)) is int and type(pickle.loads(pickle.dumps(number))) is int
    assert {40: "x"}[number] == "x" and range(number) == range(40) and [0] * number == [0] * 40
    assert (math.sqrt(number + 9), divmod(number, 7), -number, number & 8, float(number)) == (7.0, (5, 5), -40, 8, 40.0)


def test_a_tensor_may_have_its_size_or_be_multiplied_by_it() -> None:
    number = LazyInt(lambda: 3, 1, 255)
    assert torch.empty(number, 2).shape == (3, 2)
    assert torch.equal(torch.ones(2) * number, torch.full((2,), 3.0)) and torch.equal(
        number - torch.ones(2), torch.ones(2) * 2
    )


def test_settling_reaches_into_tuples_and_lists() -> None:
    assert settled((1, [LazyInt(lambda: 2, 0, 9), "x"])) == (1, [2, "x"])
    assert type(settled(LazyInt(lambda: 2, 0, 9))) is int
