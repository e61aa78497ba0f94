"""Submissions that attack a timer are graded on their program alone, which has no timer to attack.

What is timed is the program: kernels, and the steps of the host as data. It runs in another process, where none of the
submission's Python is. So these attacks either leave the program as an honest submission's is, or show in it.
"""

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from gradekit.assignment import Assignment
from gradekit.engine.budget import Unsupported
from gradekit.findings import Cause
from gradekit.inputs.spec import Input, normal
from gradekit.judge.failure import Failure
from gradekit.judge.reference import reference
from gradekit.program import Program
from gradekit.sandbox import Tracer
from gradekit.subject.device import NeedsCard
from gradekit.subject.subject import Subject
from gradekit.submission import Submission, read
from tests import right
from tests.cards import FakeWorker, device

ATTACKS = Path("tests/course/attacks")
HARMLESS = ("patches_clocks", "side_stream", "sleeps", "stops_after_a_while")
ASSIGNMENT = Assignment("vector_add", "Vector add", "add", "x + y", right.ROOT / ATTACKS)
X, Y = normal((1 << 20,), seed=1), normal((1 << 20,), seed=2)


def submitted(name: str) -> Submission:
    return read(right.file(ATTACKS / f"{name}.py"))


def bare(value: Any) -> Any:
    """A program, or a part of one, without the places in the source that it comes from."""
    if isinstance(value, str):
        return re.sub(r"#loc\w*( = .*)?|loc\(.*?\)", "", value)
    if isinstance(value, tuple):
        return tuple(map(bare, value))
    if isinstance(value, dict):
        return [bare(item) for item in value.values()]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return type(value).__name__, [
            bare(getattr(value, f.name))
            for f in dataclasses.fields(value)
            if f.name not in ("source", "path", "kernel")
        ]
    return value


def program(name: str) -> Program:
    with Tracer(submitted(name)) as tracer:
        views = [X.view(0), Y.view(1)]
        tracer.trace("add", views)
        return tracer.trace("add", views)


def timed(name: str) -> Any:
    subject = Subject(submitted(name), ASSIGNMENT, lambda: Tracer(submitted(name)), device=device(FakeWorker()))
    try:
        return subject.add.timed(X, Y, against=plus, expected=expected)
    finally:
        subject.close()


def plus(x: Any, y: Any) -> Any:
    return x + y


def expected(x: Input, y: Input) -> Any:
    return reference(plus, x, y)


@pytest.mark.parametrize("name", HARMLESS)
def test_the_program_is_that_of_an_honest_submission(name: str) -> None:
    assert bare(program(name)) == bare(program("honest"))


def test_two_different_programs_are_told_apart() -> None:
    assert bare(program("skips_what_is_done")) != bare(program("honest"))


@pytest.mark.parametrize("name", ["caches_results", "batches_calls"])
def test_a_call_that_does_not_do_its_own_work_fails(name: str) -> None:
    with pytest.raises(Failure) as caught:
        timed(name)
    assert caught.value.cause is Cause.NO_KERNEL


def test_a_kernel_that_reads_a_clock_is_not_timed() -> None:
    with pytest.raises(Unsupported, match="inline_asm"):
        timed("reads_a_clock")


def test_a_kernel_that_looks_at_what_its_last_call_left_is_not_timed() -> None:
    with pytest.raises(Failure) as caught:
        timed("skips_what_is_done")
    assert caught.value.cause is Cause.UNINITIALIZED_READ and caught.value.line is not None


def test_without_a_card_none_of_them_earns_anything() -> None:
    for name in HARMLESS:
        subject = Subject(submitted(name), ASSIGNMENT, lambda name=name: Tracer(submitted(name)))  # type: ignore[misc]
        with pytest.raises(NeedsCard):
            subject.add.timed(X, Y, against=plus, expected=expected)
        subject.close()


def test_every_attack_is_tried() -> None:
    tried = {*HARMLESS, "honest", "caches_results", "batches_calls", "reads_a_clock", "skips_what_is_done"}
    assert {"honest", *right.edits(ATTACKS)} == tried
