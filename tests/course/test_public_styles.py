"""Styles and mistakes of public kernels that were once given a wrong verdict, or a reason that was none; in public/."""

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


def checks_of(name: str, assignment: str, **options: object) -> list[Check]:
    path = right.file(f"tests/course/public/{name}.py")
    report = grade(get(assignment), path, device="cpu", **{"profile": "quick"} | options)  # type: ignore[arg-type]
    assert report.status is Status.GRADED, report.message
    return [check for check in report.checks if check.kind is not Kind.SPEED]


@pytest.mark.parametrize(("name", "assignment"), RIGHT)
def test_a_right_style_loses_nothing(name: str, assignment: str) -> None:
    checks = checks_of(name, assignment)
    assert checks and {check.id: check.message for check in checks if check.outcome is not Outcome.PASSED} == {}


@pytest.mark.parametrize(
    ("name", "assignment", "line", "words"),
    [
        ("bool_or_by_plus", "vector_add", "keep = ", ["joins masks by +", "join masks with |"]),
        ("readback_no_barrier", "softmax", "tl.load(tmp", ["other lanes of the same program", "tl.debug_barrier()"]),
        pytest.param("kept_compiled_kernel", "softmax", "KEPT[", ["an earlier call has left behind"], marks=slow),
        pytest.param("splitk_merge_mask", "matmul", "mask=j < n", ["Line 29 uses `j`"], marks=slow),
    ],
)
def test_a_wrong_one_is_told_its_line_and_its_reason(name: str, assignment: str, line: str, words: list[str]) -> None:
    keyword = {"keyword": "test_contiguous", "profile": "default"}
    failed = next(check for check in checks_of(name, assignment, **keyword) if check.outcome is Outcome.FAILED)
    assert failed.source is not None and line in failed.source.text
    assert failed.cause is not None
    said = f"{failed.message} {failed.details.get('hint') or failed.cause.hint}"
    assert [word for word in words if word not in said] == []


@slow
def test_a_lock_released_without_a_barrier_is_right_where_triton_puts_one() -> None:
    has_one = tuple(map(int, triton.__version__.split(".")[:2])) >= (3, 9)
    failed = {c.id for c in checks_of("lock_without_barrier", "layer_norm") if c.outcome is Outcome.FAILED}
    assert ("test_memory" in failed) is not has_one
