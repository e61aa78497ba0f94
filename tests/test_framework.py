"""Inspections as the grader reads them, and what is claimed of them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gradekit.assignment import Assignment
from gradekit.engine.budget import Unsupported
from gradekit.findings import Cause
from gradekit.framework import Inspection, of_submission
from gradekit.inputs.spec import normal
from gradekit.judge.failure import Failure
from gradekit.judge.framework_claims import assert_compiles, assert_opcheck, assert_operator
from gradekit.program import encode
from gradekit.sandbox import TraceError
from gradekit.sandbox.replies import part
from gradekit.subject.subject import Subject
from gradekit.submission import Submission

GOOD = Inspection(
    schema="course::f(Tensor x) -> Tensor", graphs=(("linear", "course::f", "mul"),),
    forward=("aten::mm", "triton_kernel_wrapper_functional"), backward=("aten::mm",), error="",
    checks={"test_schema": ""},
)
DATA = encode(GOOD)


def parse(data: Any, text: str) -> Inspection:
    return of_submission(part({"inspection": data}, "inspection", Inspection), text)


def test_what_was_sent_is_read() -> None:
    assert parse(DATA, "") == GOOD


@pytest.mark.parametrize("wrong", [{}, DATA | {"schema": 3}, DATA | {"graphs": "abc"}, DATA | {"forward": [1]}, None])
def test_nonsense_is_refused(wrong: Any) -> None:
    with pytest.raises(TraceError):
        parse(wrong, "")


def test_what_only_the_grader_can_say_is_not_believed() -> None:
    told = DATA | {"asks_for_device": True, "unconfirmed": "no person need look", "error": "?" * 80_000}
    found = parse(told, "x.shape")
    assert (found.asks_for_device, found.unconfirmed, len(found.error)) == (False, "", 4000)


def test_only_errors_of_code_that_asks_for_a_gpu_are_doubtful() -> None:
    assert not parse(DATA, "assert x.is_cuda").doubtful
    assert not parse(DATA | {"error": "?"}, "x.shape").doubtful
    assert parse(DATA | {"error": "?"}, "assert x.is_cuda").doubtful


def test_an_operator_with_a_kernel_is_all_that_is_claimed() -> None:
    assert_operator(GOOD)
    assert_compiles(GOOD)
    assert_compiles(UNSEEN, kernels=False)
    assert_opcheck(GOOD, "test_schema")


def test_an_operator_that_compiling_never_came_to_is_not_said_to_be_missing() -> None:
    with pytest.raises(Failure, match="failed before an operator was seen") as caught:
        assert_operator(replace(GOOD, schema="", error="TypeError: " + "word " * 200))
    assert "register" not in caught.value.message and caught.value.message.endswith("word ...")


UNSEEN = replace(GOOD, forward=("aten::mm", "course::f"))


@pytest.mark.parametrize(("claim", "seen", "cause"), [
    (assert_operator, replace(GOOD, schema=""), Cause.EXCEPTION),
    (assert_operator, replace(GOOD, schema="course::f(Tensor(a0!) x) -> ()"), Cause.INPUT_MODIFIED),
    (assert_compiles, replace(GOOD, error="Unsupported: item()"), Cause.EXCEPTION),
    (assert_compiles, UNSEEN, Cause.NO_KERNEL),
], ids=["no operator", "a schema that writes to an input", "not one graph", "a kernel that cannot be seen"])
def test_what_is_not_as_it_is_claimed_is_a_failure(claim: Any, seen: Inspection, cause: Cause) -> None:
    with pytest.raises(Failure) as caught:
        claim(seen)
    assert caught.value.cause is cause


def test_what_opcheck_says_is_a_failure() -> None:
    with pytest.raises(Failure, match="finds a fault, by test_schema: it aliases"):
        assert_opcheck(replace(GOOD, checks={"test_schema": "it aliases"}), "test_schema")


class Stub:
    """A tracer that has seen `what`."""

    def __init__(self, what: Inspection) -> None:
        self.what = what

    def load(self) -> None:
        pass

    def inspect(self, entry: str, args: Any, wanted: Any) -> Inspection:
        return self.what


@pytest.mark.parametrize("seen", [replace(GOOD, unavailable="no"), replace(GOOD, error="?", asks_for_device=True)])
def test_what_cannot_be_known_is_nobodys_fault(seen: Inspection) -> None:
    subject = Subject(Submission("", "", ""), Assignment("f", "F", "f", "", Path()), lambda: Stub(seen))  # type: ignore[arg-type,return-value]
    with pytest.raises(Unsupported):
        subject.f.inspected(normal((2, 3)))
