"""Speed as a check grades it, on a real card: right figures, wrong results, faults, and
attacks on a timer that is not there."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from gradekit.assignment import Assignment, discover
from gradekit.findings import Cause, Outcome
from gradekit.inputs.spec import Input, normal
from gradekit.judge.failure import Failure
from gradekit.judge.reference import reference
from gradekit.report.record import to_dict, validate
from gradekit.sandbox import Tracer
from gradekit.subject.device import Device
from gradekit.subject.subject import Subject
from gradekit.subject.timed_call import Timed, assert_speed, at_least
from gradekit.submission import Submission, read
from tests import right
from tests.graded import grade
from tests.texts import HEAD, ending

pytestmark = pytest.mark.gpu

ROOT = Path(__file__).parents[2]
ATTACKS = Path("tests/course/attacks")
ASSIGNMENTS = discover(ROOT / "assignments")
ASSIGNMENT = Assignment("vector_add", "Vector add", "add", "x + y", ROOT / ATTACKS)
X, Y = normal((1 << 24,), seed=1), normal((1 << 24,), seed=2)

KERNEL = HEAD + """@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    BODY
""" + ending(
    "x, y", "torch.empty_like(x)", "add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)", "add",
)
STORE = "tl.store(out_ptr + i, tl.load(x_ptr + i, i < n) + tl.load(y_ptr + i, i < n), i < n)"
WILD = "tl.store(out_ptr + i.to(tl.int64) * 1000000, tl.load(x_ptr + i, i < n), i < n)"
TWICE = STORE.replace(" + tl.load(y", " + 2 * tl.load(y")


@pytest.fixture(scope="module")
def card() -> Iterator[Device]:
    device = Device("cuda")
    yield device
    device.close()


def plus(x: Any, y: Any) -> Any:
    return x + y


def expected(x: Input, y: Input) -> Any:
    return reference(plus, x, y)


def timed(submission: Submission, card: Device) -> Timed:
    subject = Subject(submission, ASSIGNMENT, lambda: Tracer(submission), device=card)
    try:
        return subject.add.timed(X, Y, against=plus, expected=expected)
    finally:
        subject.close()


def written(body: str) -> Submission:
    return Submission("submission.py", KERNEL.replace("BODY", body), "")


def test_a_plain_addition_is_as_fast_as_torch(card: Device) -> None:
    found = timed(written(STORE), card)
    assert_speed(found, at_least(0.9, "eager"), at_least(0.9, "compiled"))
    assert found.ratio("eager").value < 1.2
    assert found.counters.launches == 1 and found.counters.bytes_allocated == 4 << 24


@pytest.mark.parametrize("name", ["patches_clocks", "side_stream", "sleeps", "stops_after_a_while"])
def test_an_attack_on_the_timer_changes_no_figure(name: str, card: Device) -> None:
    honest = timed(read(right.file(ATTACKS / "honest.py")), card)
    attack = timed(read(right.file(ATTACKS / f"{name}.py")), card)
    assert attack.seconds() == pytest.approx(honest.seconds(), rel=0.03)


def test_a_wrong_result_earns_nothing_however_fast_it_is(card: Device) -> None:
    with pytest.raises(Failure, match="in a call that was timed") as caught:
        timed(written(TWICE), card)
    assert caught.value.cause is Cause.WRONG_VALUES


def test_an_illegal_access_is_a_failure_and_the_card_works_afterwards(card: Device) -> None:
    with pytest.raises(Failure, match="add_kernel") as caught:
        timed(written(WILD), card)
    assert caught.value.cause is Cause.ILLEGAL_ACCESS and caught.value.line is not None
    assert timed(written(STORE), card).ratio("eager").value > 0.8


def test_float64_references_are_made_on_the_card() -> None:
    from gradekit.gpu.inputs import make

    x = make(normal((8192, 4096)), 1, "cuda")
    wanted = reference(lambda x: torch.softmax(x, -1), x)
    assert wanted.exact.is_cuda and wanted.allowance.is_cuda


@pytest.mark.parametrize("id", ["vector_add", "fused_chain", "softmax", "matmul"])
def test_a_solution_earns_everything(id: str) -> None:
    report = grade(ASSIGNMENTS[id], ROOT / "solutions" / id / "solution.py", keyword="speed", device="cuda")
    lost = {
        check.id: check.message for check in report.checks if check.outcome is not Outcome.PASSED and not check.bonus
    }
    assert (report.message, lost) == ("", {})
    assert report.environment["gpu"] == torch.cuda.get_device_name()
    validate(to_dict(report))
    for check in report.checks:
        print(id, check.details["speed"])
