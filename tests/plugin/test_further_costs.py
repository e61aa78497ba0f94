"""A further call that takes much work is made once for what it shows."""

from __future__ import annotations

from gradekit.assignment import get
from gradekit.inputs.calls import calls, domain_of, draws_of
from gradekit.plugin.further_run import MOST_EXPECTED, MUCH, FurtherCosts
from gradekit.program import View
from gradekit.unseen.further import FurtherCall, made
from gradekit.unseen.host_branches import TracedForm

SOFTMAX = domain_of(get("softmax").tests)["softmax"]


def further(rows: int, dtype: str = "float32", why: str = "M >= 4,096") -> FurtherCall:
    """A call with so many rows of 16."""
    draws = draws_of(calls(SOFTMAX))
    assert draws is not None
    form = TracedForm("", "softmax", (View(0, dtype, (rows, 16), (16, 1)),))
    return FurtherCall(made(draws, form, {"M": rows, "N": 16}, 0, {}), why, line=12)


def test_what_took_much_is_not_tried_again_in_another_check() -> None:
    costs = FurtherCosts()
    costs.note(further(100), "one", MUCH + 1)
    assert costs.spares(further(100), "another")


def test_what_took_little_is_tried_in_each_check() -> None:
    costs = FurtherCosts()
    costs.note(further(100), "one", MUCH)
    assert not costs.spares(further(100), "another")


def test_another_comparison_or_another_dtype_is_tried_whatever_the_first_took() -> None:
    costs = FurtherCosts()
    costs.note(further(100), "one", MUCH + 1)
    assert not costs.spares(further(100, why="M >= 8,192"), "another")
    assert not costs.spares(further(100, dtype="float16"), "another")


def test_a_larger_call_of_the_same_check_is_made_where_it_is_not_expected_to_take_much() -> None:
    costs = FurtherCosts()
    costs.note(further(100), "one", MOST_EXPECTED // 4)  # more than MUCH
    assert not costs.spares(further(400), "one")
    assert costs.spares(further(401), "one")


def test_what_little_work_says_nothing_of_is_tried() -> None:
    costs = FurtherCosts()
    costs.note(further(1), "one", MUCH)
    assert not costs.spares(further(10_000), "one")


def test_a_call_whose_result_was_known_says_nothing_of_what_it_takes() -> None:
    costs = FurtherCosts()
    costs.note(further(100), "one", 0)
    costs.note(further(100), "two", MUCH + 1)
    assert costs.spares(further(100), "one")
