"""A call that launches nothing is right where nothing is left to compute; calls with work decide who computes."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from gradekit.assignment import Assignment
from gradekit.findings import Cause
from gradekit.inputs.spec import Input
from gradekit.judge.compare import assert_close
from gradekit.judge.failure import Failure
from gradekit.judge.memory_checks import assert_memory_clean
from gradekit.judge.reference import reference
from gradekit.sandbox import Tracer
from gradekit.subject.subject import Subject
from gradekit.submission import Submission
from tests.beside import beside
from tests.texts import HEAD

TEXT = HEAD + beside(__file__)["text"]


@pytest.fixture
def subject() -> Iterator[Subject]:
    submission = Submission("submission.py", TEXT, "0" * 64)
    subject = Subject(submission, Assignment("sums", "Sums", "total", "", Path(".")), lambda: Tracer(submission))
    yield subject
    subject.close()


def values(count: int) -> Input:
    return Input("float32", (count,), (1,), profile="positive")


def expected_total(x: Input):  # type: ignore[no-untyped-def]
    return reference(lambda x: torch.stack([x.sum(), x.new_zeros(()), x.new_zeros(())]), x)


def offence(subject: Subject, entry: str, *sizes: int, compares: bool = True) -> Failure | None:
    """What is wrong in a check that calls `entry` with so many values each."""
    try:
        for size in sizes:
            seen = getattr(subject, entry)(values(size))
            if compares:
                assert_close(seen, expected_total(values(size)))
            else:
                assert_memory_clean(seen)
        subject.assert_kernels_work()
    except Failure as failure:
        return failure
    return None


@pytest.mark.parametrize("entry", ["total", "total_of_parts"])
def test_where_there_are_no_elements_a_right_result_needs_no_launch(subject: Subject, entry: str) -> None:
    assert offence(subject, entry, 0) is None
    assert offence(subject, entry, 0, 5, compares=False) is None


def test_where_there_are_elements_it_is_wrong_and_the_missing_launch_is_why(subject: Subject) -> None:
    failure = offence(subject, "only_large", 100, 5)
    assert failure is not None and failure.cause is Cause.NO_KERNEL
    assert failure.message.startswith("only_large launches no Triton kernel. At shape [3], float32: 1 of 3")


def test_a_check_that_compares_nothing_still_asks_for_a_kernel(subject: Subject) -> None:
    failure = offence(subject, "never", 0, 5, compares=False)
    assert failure is not None and failure.cause is Cause.NO_KERNEL
    assert [call.args for call in subject.calls] == [(values(0),)]


def scaled(x: Input, p: float):  # type: ignore[no-untyped-def]
    return reference(lambda x, p: x * (1 - p), x, p)


def test_a_copy_is_right_where_another_number_makes_the_host_launch(subject: Subject) -> None:
    assert_close(subject.scaled(values(5), 0.0), scaled(values(5), 0.0))
    subject.assert_kernels_work()


@pytest.mark.parametrize("entry", ["copied", "handed_back"])
def test_a_copy_that_torch_makes_whatever_the_numbers_is_refused(subject: Subject, entry: str) -> None:
    with pytest.raises(Failure, match="no Triton kernel") as caught:
        getattr(subject, entry)(values(5), 0.0)
    assert caught.value.cause is Cause.NO_KERNEL


def test_what_depends_on_no_tensor_is_work_at_any_size(subject: Subject) -> None:
    seen = subject.ones(4)
    assert_close(seen, reference(lambda n: torch.ones(n), 4))
    with pytest.raises(Failure, match="ones launches no Triton kernel"):
        subject.assert_kernels_work()
