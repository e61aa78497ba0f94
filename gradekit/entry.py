"""A function of the submission, as a test calls it: `submission.softmax` is one.

    submission.layer_norm(x, weight, bias)                                            its result
    submission.layer_norm.gradient(x, weight, bias, upstream=dy, wanted=(0, 1, 2), only=1)    the gradient of weight

Runs in the grader's process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from gradekit.runs import Observation
from gradekit.strategies import Input

UPSTREAM = "the gradient of the result"
"""What messages call the last input of a backward pass."""


class Caller(Protocol):
    """What can call a submission: see `gradekit.subject`."""

    def call(self, entry: str, args: Sequence[Any], wanted: tuple[int, ...] = ()) -> Observation:
        """The observation of `entry(*args)`, or of its backward pass."""


class Entry:
    """The function `name` of a submission."""

    def __init__(self, caller: Caller, name: str) -> None:
        self._caller = caller
        self._name = name

    def __repr__(self) -> str:
        return f"Entry({self._name!r})"

    def __call__(self, *args: Any) -> Observation:
        """The observation of a call with `args`: Input specs, tensors, numbers, None.

        Raises:
            TraceError, Failure, Unsupported: as `Subject.call` says.
        """
        return self._caller.call(self._name, args)

    def gradient(
        self, *args: Any, upstream: Input, wanted: Sequence[int] = (0,), only: int | None = None
    ) -> Observation:
        """The observation of a call with `args` and of its backward pass; its results are gradients.

        Args:
            args: as for a call. The reference of a result must take `upstream` as one more argument, the last.
            upstream: the gradient of the call's result, of its shape and dtype, in any layout.
            wanted: the positions of the arguments that require a gradient; the results come in this order.
            only: one of them, where a check is about the gradient of one argument alone.

        Raises:
            TraceError, Failure, Unsupported: as `Subject.call` says; a Failure too where `backward` gives None.
        """
        observation = self._caller.call(self._name, (*args, upstream.named(UPSTREAM)), tuple(wanted))
        return observation if only is None else _part(observation, list(wanted).index(only))


def _part(observation: Observation, number: int) -> Observation:
    variants = tuple(_part(variant, number) for variant in observation.variants)
    return replace(observation, results=(observation.results[number],), variants=variants)
