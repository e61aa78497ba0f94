"""A mend is held against examples of other checks: wrong values of its kernel refute it, and nothing else does."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from gradekit.findings import Cause
from gradekit.judge.failure import Failure
from gradekit.plugin.every_check import HeldExample


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


def not_traced(submission: Any, n: int) -> None:
    raise ValueError("unknown")


@pytest.mark.parametrize(
    ("test", "n", "kernel", "right"),
    [
        (wrong_values, 3, "add", True),
        (wrong_values, 4, "add", False),
        (wrong_values, 4, "", False),
        (wrong_values, 4, "another", True),
        (races, 4, "add", True),
        (not_traced, 4, "add", True),
    ],
)
def test_wrong_values_of_the_kernel_alone_refute_a_mend(test: Any, n: int, kernel: str, right: bool) -> None:
    held = HeldExample("check", True, test, {"n": n})
    assert (held.wrong_result(Called(), kernel) is None) is right  # type: ignore[arg-type]
