"""A further call that takes much work is made once for what it shows; a check that counts bytes makes none."""

from pathlib import Path

from gradekit.assignment import get
from gradekit.inputs.calls import calls, domain_of, draws_of
from gradekit.plugin.further_run import purpose
from gradekit.program import View
from gradekit.unseen.further import FurtherCall, made
from gradekit.unseen.host_branches import TracedForm
from tests.graded import grade

SOFTMAX = domain_of(get("softmax").tests)["softmax"]


def further(rows: int, dtype: str = "float32", why: str = "M >= 4,096") -> FurtherCall:
    """A call with so many rows of 16."""
    draws = draws_of(calls(SOFTMAX))
    assert draws is not None
    form = TracedForm("", "softmax", (View(0, dtype, (rows, 16), (16, 1)),))
    return FurtherCall(made(draws, form, {"M": rows, "N": 16}, 0, {}), why, line=12)


def test_a_larger_call_for_the_same_is_of_one_purpose_with_a_smaller_one() -> None:
    assert purpose(further(100)) == purpose(further(400))


def test_another_comparison_or_another_dtype_is_another_purpose() -> None:
    assert purpose(further(100)) not in (purpose(further(100, why="M >= 8,192")), purpose(further(100, dtype="float16")))


def test_a_check_that_counts_bytes_makes_calls_of_its_own_sizes_alone() -> None:
    softmax, keyword = Path("solutions/softmax/solution.py"), "each_row_once or widths"
    report = grade(get("softmax"), softmax, keyword=keyword, hidden=True, device="cpu")
    solved = {check.id: "solved" in check.details["coverage"] for check in report.checks}
    assert solved == {"test_each_row_once": False, "test_widths": True}
