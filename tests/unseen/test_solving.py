"""Sizes that are tried for a comparison: those that a check may have, and many of them."""

import pytest

from gradekit.assignment import get
from gradekit.inputs.calls import calls, domain_of, draws_of
from gradekit.unseen.scope import CLOSE, ROUGH, CallScope, possible_sizes, tried

SOFTMAX = domain_of(get("softmax").tests)["softmax"]


def scope(**listed: list[int]) -> CallScope:
    """Of softmax, with these sizes alone where they are listed."""
    draws = draws_of(calls(SOFTMAX, sizes=listed))
    assert draws is not None
    return CallScope(draws, 0)


def test_of_a_size_that_a_check_lists_only_that_is_tried() -> None:
    assert set(tried(scope(N=[33, 1000]), (577,))["N"].tolist()) == {33, 1000}


@pytest.mark.parametrize("closeness", [CLOSE, ROUGH])
def test_each_size_up_to_a_bound_is_tried_alone_and_special_ones_beyond(closeness: int) -> None:
    columns = tried(scope(), (9973,), close=closeness)
    assert {*range(1, closeness), 9973} <= set(columns["M"].tolist())


def test_special_sizes_are_tried_together() -> None:
    columns = tried(scope(), (577, 601), close=ROUGH)
    assert {(577, 601), (601, 577)} <= set(zip(columns["M"].tolist(), columns["N"].tolist(), strict=True))


def test_sizes_that_a_check_may_not_have_are_left_out() -> None:
    found = scope()
    columns = possible_sizes(found, ())
    assert bool(found.allows(columns).all()) and len(columns["M"]) < len(tried(found, ())["M"])
