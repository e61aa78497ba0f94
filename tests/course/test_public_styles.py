"""Styles of public kernels that were once given a wrong verdict; in public/."""

import pytest
import triton

from gradekit.assignment import get
from gradekit.findings import Check, Kind, Outcome, Status
from tests import right
from tests.graded import grade

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
