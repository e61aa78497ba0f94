"""No right submission loses a point, whatever its style: those in right/, and those that mistakes are made of."""

from pathlib import Path

import pytest

from gradekit.assignment import discover
from gradekit.course.mistakes import bases
from gradekit.findings import Kind, Outcome, Status
from tests import right
from tests.graded import grade

ROOT = Path(__file__).parents[2]
ASSIGNMENTS = discover(ROOT / "assignments")
STYLES = [path for id in right.assignments() for path in right.files(id, (".py", ".ipynb"))]
SUBMISSIONS = STYLES + [path for assignment in ASSIGNMENTS.values() for path in bases(assignment)]

EACH_TIME = [
    "vector_add/rows_and_columns.py", "vector_add/*.ipynb", "giou_loss/helpers.py", "fused_chain/persistent.py", "spmm/right_row_and_tile.py",
    "softmax/pair_reduction.py", "matmul/device_descriptors.py", "layer_norm/right_column_sums.py",
    "custom_op/sums_in_a_kernel.py", "decode_attention/split_in_four.py", "dropout/nothing_to_drop.py", "flash_attention/right_tutorial_pointers.py",
]  # fmt: skip
"""Styles that differ most, one at least of each assignment whose solution test_assignments does not try; the slow tests try all."""

MOST_USED = 0.1
"""Of the work that a check may take: what a right submission of any style stays below."""


def _case(path: Path) -> object:
    often = any(path.match(pattern) for pattern in EACH_TIME)
    return pytest.param(path, id=f"{path.parent.name}/{path.name}", marks=[] if often else [pytest.mark.slow])


@pytest.mark.parametrize("path", [_case(path) for path in SUBMISSIONS])
def test_a_right_submission_earns_all_that_is_measured(path: Path) -> None:
    report = grade(ASSIGNMENTS[path.parent.name], path, profile="quick", device="cpu")
    measured = [check for check in report.checks if check.kind is not Kind.SPEED]
    lost = {check.id: check.message for check in measured if check.outcome is not Outcome.PASSED}
    assert (report.status, report.message, lost) == (Status.GRADED, "", {})
    assert (report.score.earned + report.score.pending, report.score.possible) == pytest.approx((100, 100))
    assert {check.id: check.details["budget"] for check in measured if check.details.get("budget", 0) > MOST_USED} == {}


@pytest.mark.parametrize("assignment", [id for id, assignment in ASSIGNMENTS.items() if not assignment.is_quiz])
def test_an_assignment_has_right_submissions_in_at_least_six_styles(assignment: str) -> None:
    assert len([path for path in SUBMISSIONS if path.parent.name == assignment]) >= 6


def test_what_is_to_be_tried_each_time_is_there() -> None:
    assert [pattern for pattern in EACH_TIME if not any(path.match(pattern) for path in SUBMISSIONS)] == []
