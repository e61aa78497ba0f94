"""A function of the submission, as a test calls it: `submission.softmax` is one.

    submission.layer_norm(x, weight, bias)                                            its result
    submission.layer_norm.gradient(x, weight, bias, upstream=dy, wanted=(0, 1, 2), only=1)    the gradient of weight
    submission.layer_norm.timed(x, weight, bias, against=torch_layer_norm, expected=expected)  how fast it is, on a card

Runs in the grader's process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from gradekit.framework import Inspection
from gradekit.inputs.spec import Input
from gradekit.judge.contents import Results
from gradekit.subject.runs import Observation

if TYPE_CHECKING:
    from gradekit.program import Program
    from gradekit.subject.timed_call import Timed

UPSTREAM = "the gradient of the result"
"""What messages call the last input of a backward pass."""


class Caller(Protocol):
    """What can call a submission: see `gradekit.subject.subject`."""

    def call(self, entry: str, args: Sequence[Any], wanted: tuple[int, ...] = ()) -> Observation:
        """The observation of `entry(*args)`, or of its backward pass."""

    def time(self, entry: str, args: Sequence[Any], against: Callable[..., Any], expected: Callable[..., Any]) -> Timed:
        """`entry(*args)` timed on a card, beside `against`."""

    def inspect(self, entry: str, args: Sequence[Any]) -> Inspection:
        """What torch makes of a model around `entry`."""

    def traced(self, entry: str, args: Sequence[Any], wanted: tuple[int, ...] = ()) -> Program:
        """What `entry(*args)`, or its backward pass, becomes, without being run."""


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
        return observation if only is None else part_of(observation, list(wanted).index(only))

    def traced(self, *args: Any, upstream: Input | None = None, wanted: Sequence[int] = ()) -> Program:
        """The program of a call with `args`, or of its backward pass as in `gradient`, of any size: it is not run.

        Raises:
            TraceError: as `Subject.call` says.
        """
        given = args if upstream is None else (*args, upstream.named(UPSTREAM))
        return self._caller.traced(self._name, given, tuple(wanted))

    def timed(self, *args: Any, against: Callable[..., Any], expected: Callable[..., Any]) -> Timed:
        """A call with `args`, timed on a card: eager torch, torch.compile and the submission in turn.

        Args:
            args: Input specs (see `strategies.normal`), numbers, None; values are drawn anew, on the card.
            against: the torch function to be compared with, of the same arguments.
            expected: the Reference of the result, of the same arguments; what the timed calls return is held against
                it.

        Raises:
            NeedsCard: there is no card: the check is pending.
            TraceError, Failure, Unsupported: as `Subject.call` says.
        """
        return self._caller.time(self._name, args, against, expected)

    def inspected(self, *args: Any) -> Inspection:
        """What torch makes of a model that calls this function, for arguments like `args`: see `judge.framework`.

        Raises:
            TraceError: as `Subject.call` says.
        """
        return self._caller.inspect(self._name, args)


def part_of(observation: Observation, number: int) -> Observation:
    """The same observation, of its result at place `number` alone."""
    variants = tuple(part_of(variant, number) for variant in observation.variants)
    results = observation.results
    part = results.only(number) if isinstance(results, Results) else (results[number],)
    return replace(observation, results=part, variants=variants, part=number)
