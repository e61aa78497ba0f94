"""A mend is held against examples of other checks: what it makes fail in its kernel refutes it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from gradekit.findings import Cause
from gradekit.inputs.spec import Input
from gradekit.judge.failure import Failure
from gradekit.plugin.tutoring import apart, raised_by
from gradekit.repair.failed_check import Example
from gradekit.repair.other_checks import with_a_mend
from gradekit.repair.search import OtherChecks


class Called:
    """A subject of which one call launched the kernel `add`."""

    def __init__(self) -> None:
        program = SimpleNamespace(
            kernels={"k": SimpleNamespace(name="add")}, launches=lambda: [SimpleNamespace(kernel="k")]
        )
        self._call = SimpleNamespace(observation=SimpleNamespace(program=program))
        self.calls: list[Any] = []

    def forget_calls(self) -> None:
        self.calls.clear()

    def call(self) -> None:
        self.calls.append(self._call)


def wrong_values(submission: Any, n: int) -> None:
    submission.call()
    if n > 3:
        raise Failure(Cause.WRONG_VALUES, "wrong", comparison=SimpleNamespace(actual="3"))  # type: ignore[arg-type]


def races(submission: Any, n: int) -> None:
    submission.call()
    raise Failure(Cause.RACE, "no comparison")


def takes_too_long(submission: Any, n: int) -> None:
    submission.call()
    raise Failure(Cause.BUDGET_EXCEEDED, "a try has less work than the submission")


def not_traced(submission: Any, n: int) -> None:
    raise ValueError("unknown")


@pytest.mark.parametrize(
    ("test", "n", "kernel", "fails"),
    [
        (wrong_values, 3, "add", False),
        (wrong_values, 4, "add", True),
        (wrong_values, 4, "", True),
        (wrong_values, 4, "another", False),
        (races, 4, "add", True),
        (takes_too_long, 4, "add", False),
        (not_traced, 4, "add", True),
    ],
)
def test_an_example_fails_where_the_kernel_takes_part_and_had_the_time(
    test: Any, n: int, kernel: str, fails: bool
) -> None:
    held = Example("one", raised_by(lambda submission: test(submission, n)))
    assert (held.failure(Called(), kernel) is not None) is fails  # type: ignore[arg-type]


def example(check: str, after: str | None) -> Example:
    """One that raises this with the mend, where it raises anything."""

    def test(submission: Any) -> None:
        submission.call()
        if after is not None:
            raise Failure(Cause.WRONG_VALUES, "wrong", comparison=SimpleNamespace(actual=torch.tensor(float(after))))  # type: ignore[arg-type]

    return Example(object(), raised_by(test), check)


@pytest.mark.parametrize(
    ("examples", "found"),
    [
        ([("one", None, None), ("two", "1", None)], OtherChecks.ALL),
        ([("one", None, None), ("two", "1", "1")], OtherChecks.AS_BEFORE),
        ([("one", None, "1")], OtherChecks.NOT),
        ([("one", "1", None), ("two", "1", "2")], OtherChecks.IN_PART),
        ([("one", None, None), ("two", "1", "2")], OtherChecks.NOT),
        ([("one", "1", None), ("one", "1", "2")], OtherChecks.NOT),
    ],
)
def test_a_mend_may_be_one_of_two_if_it_breaks_nothing_and_makes_whole_checks_right(
    examples: list[tuple[str, str | None, str | None]], found: OtherChecks
) -> None:
    """Each example has its check, what was wrong before, and what is wrong with the mend."""
    held = [example(check, after) for check, _, after in examples]
    errors = {
        one: Failure(Cause.WRONG_VALUES, "wrong", comparison=SimpleNamespace(actual=torch.tensor(float(before))))  # type: ignore[arg-type]
        for one, (_, before, _) in zip(held, examples, strict=True) if before is not None
    }  # fmt: skip
    assert with_a_mend(held, Called(), "", errors.get) is found  # type: ignore[arg-type]


def test_a_view_is_asked_for_with_a_gap_behind_each_dimension_too() -> None:
    turned = Input("float32", (3, 3, 16), (3, 1, 9))  # whose first two dimensions are one in memory
    assert apart({"call": (turned, 0.5)}) == {"call": (Input("float32", (3, 3, 16), (4, 1, 16)), 0.5)}
    spread = Input("float32", (2, 3, 4), (4, 0, 1))
    assert apart(spread) == Input("float32", (2, 3, 4), (5, 0, 1)), "what is expanded stays so"
    for plain in (Input("float32", (2, 3, 4), (12, 4, 1)), Input("float32", (3, 4), (1, 3))):
        assert apart(plain) == plain
