"""What is right by luck fails a check of correctness; what any call did to memory fails the check of memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gradekit.assignment import Assignment
from gradekit.findings import Cause, Outcome
from tests.graded import grade
from tests.plugin.samples import KERNEL, RIGHT, TESTS, UNMASKED

MEMORY_FIRST = '''
"""Checks of double(x)."""
from hypothesis import given

from gradekit import assert_close, assert_memory_clean, points, reference, vectors

def twice(x):
    return x + x

@points(20, kind="memory")
@given(x=vectors(dtypes=["float32"], size=(64, 64)))
def test_memory(submission, x):
    """Stays inside its tensors"""
    assert_memory_clean(submission.double(x))

@points(30)
@given(x=vectors(size=(1, 300)))
def test_doubles(submission, x):
    """Doubles every element"""
    assert_close(submission.double(x), reference(twice, x))
'''

OVERLAPPING = (
    KERNEL.replace("* BLOCK +", "* (BLOCK - 4) +")
    .replace("triton.cdiv(x.numel(), 64)", "triton.cdiv(x.numel(), 60)")
    .replace("mask=i < n)", "mask=(i < n) & (tl.arange(0, BLOCK) < BLOCK - 4), other=0)")
    .replace("FACTOR", "2")
    .replace("MASK", "i < n")
)
"""Each program also stores zeros to the next one's first elements, which the next one overwrites."""


def test_rows_that_run_into_each_other_are_right_by_luck(
    assignment: Callable[..., Assignment], submitted: Callable[[str], Path]
) -> None:
    doubles, _ = grade(assignment(TESTS), submitted(OVERLAPPING), profile="quick", device="cpu").checks
    assert (doubles.outcome, doubles.cause) == (Outcome.FAILED, Cause.WRITE_CONFLICT)
    assert "the result is right here is luck" in doubles.message


def test_the_memory_check_answers_for_the_calls_of_other_checks(
    assignment: Callable[..., Assignment], submitted: Callable[[str], Path]
) -> None:
    made = assignment(MEMORY_FIRST)
    memory, doubles = grade(made, submitted(UNMASKED), profile="quick", device="cpu").checks
    assert (memory.id, doubles.outcome) == ("test_memory", Outcome.PASSED)
    assert (memory.outcome, memory.earned) == (Outcome.FAILED, 0)
    assert "The calls of another check show it" in memory.message
    assert all(check.outcome is Outcome.PASSED for check in grade(made, submitted(RIGHT), profile="quick").checks)
