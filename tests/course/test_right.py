"""No right submission loses a point, whatever style it is written in: those here, and those that mistakes are made of."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradekit.assignment import discover
from gradekit.course.mistakes import bases
from gradekit.findings import Kind, Outcome, Status
from tests.graded import grade

ROOT = Path(__file__).parents[2]
ASSIGNMENTS = discover(ROOT / "assignments")
STYLES = sorted(path for path in (Path(__file__).parent / "right").glob("*/*") if path.suffix in (".py", ".ipynb"))
SUBMISSIONS = STYLES + [path for assignment in ASSIGNMENTS.values() for path in bases(assignment)]

FIRST = ("vector_add", "fused_chain", "softmax", "matmul")


def _case(path: Path) -> object:
    """The first assignments' submissions show what any may look like; of the others, every fourth is tried each time."""
    number = [other for other in SUBMISSIONS if other.parent == path.parent].index(path)
    often = path.parent.name in FIRST or number % 4 == 0
    return pytest.param(path, id=f"{path.parent.name}/{path.name}", marks=[] if often else [pytest.mark.slow])


@pytest.mark.parametrize("path", [_case(path) for path in SUBMISSIONS])
def test_a_right_submission_earns_all_that_is_measured(path: Path) -> None:
    report = grade(ASSIGNMENTS[path.parent.name], path, profile="quick", device="cpu")
    measured = [check for check in report.checks if check.kind is not Kind.SPEED]
    lost = {check.id: check.message for check in measured if check.outcome is not Outcome.PASSED}
    assert (report.status, report.message, lost) == (Status.GRADED, "", {})
    assert (report.score.earned + report.score.pending, report.score.possible) == pytest.approx((100, 100))


@pytest.mark.parametrize("assignment", [id for id, assignment in ASSIGNMENTS.items() if not assignment.is_quiz])
def test_an_assignment_has_right_submissions_in_at_least_six_styles(assignment: str) -> None:
    assert len([path for path in SUBMISSIONS if path.parent.name == assignment]) >= 6
