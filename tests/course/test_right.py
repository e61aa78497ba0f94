"""No right submission loses a point, whatever its style: those in right/, and those that mistakes are made of."""

from pathlib import Path
from typing import Any

import pytest
import triton

from gradekit.assignment import discover, get
from gradekit.course.mistakes import bases
from gradekit.findings import Check, Kind, Outcome, Status
from tests import right
from tests.graded import grade

ROOT = Path(__file__).parents[2]
ASSIGNMENTS = discover(ROOT / "assignments")
STYLES = [path for id in right.assignments() for path in right.files(id, (".py", ".ipynb"))]
SUBMISSIONS = STYLES + [path for assignment in ASSIGNMENTS.values() for path in bases(assignment)]

SLOW = ("persistent_scalars.py", "locks.py", "flash_attention/helpers.py", "sums_by_sample.py", "expanded_heads.py")
"""Left to the slow tests: programs of many launches or steps, each of which takes as long as a dozen others."""

MOST_USED = 0.1
"""Of the work that a check may take: what a right submission of any style stays below."""


def _case(path: Path) -> Any:
    """One of each assignment is tried, and one of all that take long."""
    name, is_long = f"{path.parent.name}/{path.name}", path.parent.name in right.LONG
    mark = pytest.mark.slow if name.endswith(SLOW) else pytest.mark.sample(1)
    return pytest.param(path, id=f"long/{name}" if is_long else name, marks=mark)


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


# --- Styles of public kernels that were once given a wrong verdict ----------------------------------------------------


slow = pytest.mark.slow
RIGHT = [
    pytest.param("autotune_reset_to_zero", "matmul", marks=slow),  # the tuner's own hooks
    pytest.param("early_return_else", "vector_add", marks=slow),  # blocks in another order than they run
    pytest.param("many_configs", "matmul", marks=slow),  # 384 configurations
    ("notebook_named_py", "vector_add"),
    pytest.param("spmm_no_launch_when_empty", "spmm", marks=slow),
    pytest.param("spmm_persistent_rows_while", "spmm", marks=slow),
]


def checks_of(name: str, assignment: str) -> list[Check]:
    report = grade(get(assignment), right.file(f"tests/course/public/{name}.py"), device="cpu", profile="quick")
    assert report.status is Status.GRADED, report.message
    return [check for check in report.checks if check.kind is not Kind.SPEED]


@pytest.mark.parametrize(("name", "assignment"), RIGHT)
def test_a_right_style_loses_nothing(name: str, assignment: str) -> None:
    checks = checks_of(name, assignment)
    assert checks and {check.id: check.message for check in checks if check.outcome is not Outcome.PASSED} == {}


@slow
def test_a_lock_released_without_a_barrier_is_right_where_triton_puts_one() -> None:
    has_one = tuple(map(int, triton.__version__.split(".")[:2])) >= (3, 9)
    failed = {c.id for c in checks_of("lock_without_barrier", "layer_norm") if c.outcome is Outcome.FAILED}
    assert ("test_memory" in failed) is not has_one
