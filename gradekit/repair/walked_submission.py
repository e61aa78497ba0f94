"""A text of the submission that answers calls by a walk of its source (see gradekit.repair), where that can be
walked: a small part of what it costs to trace and run them. What a walk finds right is taken for right; it blames
nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from torch import Tensor

from gradekit.inputs.spec import Input
from gradekit.interpreter.shown_call import HostCall, HostReplay
from gradekit.interpreter.tile_values import NotWalked
from gradekit.interpreter.walked_call import code_of
from gradekit.judge.failure import Failure
from gradekit.program import Program
from gradekit.repair.work import Limit
from gradekit.submission.parsed_source import ParsedSource


class Runs(Protocol):
    """An example: what it raises when it is run on a submission."""

    def run(self, submission: WalkedSubmission, /) -> BaseException | None:
        """What it raises, None where it is right."""


class WalkedExamples:
    """What becomes of examples of checks with a text that is walked, each once. An autotuner chooses what it chose in
    `program`, another call."""

    def __init__(self, text: str, program: Program) -> None:
        source = ParsedSource.parsed(text)
        self._submission = WalkedSubmission(source, program) if source is not None else None
        self._known: dict[Runs, BaseException | None] = {}
        self._in_vain = 0

    def error(self, example: Runs) -> BaseException | None:
        """What an example raises on the text: None where it is right, a Failure where it is wrong,
        anything else where that is not known."""
        if self._submission is None or self._in_vain == Limit.IN_VAIN:
            return NotWalked("a text that cannot be walked")
        if example not in self._known:
            self._known[example] = error = example.run(self._submission)
            is_known = error is None or isinstance(error, Failure)
            self._in_vain = 0 if is_known else self._in_vain + 1
        return self._known[example]


class WalkedSubmission:
    """What tests can call in the place of a submission: each function of the `source`. A call gives tensors, or raises
    what a walk raises, `NotWalked` among others."""

    def __init__(self, source: ParsedSource, program: Program) -> None:
        self._source, self._program, self._code = source, program, code_of(source)

    def __getattr__(self, name: str) -> WalkedEntry:
        if name.startswith("_"):
            raise AttributeError(name)
        return WalkedEntry(self._call, name)

    def _call(self, entry: str, args: Sequence[Any], wanted: tuple[int, ...]) -> list[Tensor]:
        given = tuple(one.tensor() if isinstance(one, Input) else one for one in args)
        replay = HostReplay(HostCall(entry, given, wanted), self._program, self._source, self._code)
        found = [one for one in replay.run(Limit.WALK, lenient=False) if isinstance(one, Tensor)]
        if len(found) < max(len(wanted), 1):
            raise NotWalked("a result that is no tensor")
        return found


class WalkedEntry:
    """A function of such a submission."""

    def __init__(self, call: Callable[[str, Sequence[Any], tuple[int, ...]], list[Tensor]], name: str) -> None:
        self._call, self._name = call, name

    def __call__(self, *args: Any) -> list[Tensor]:
        """The results of a call."""
        return self._call(self._name, args, ())

    def gradient(
        self, *args: Any, upstream: Input, wanted: Sequence[int] = (0,), only: int | None = None
    ) -> list[Tensor]:
        """The gradients that its backward pass gives, as `gradekit.subject.subject` has them."""
        found = self._call(self._name, (*args, upstream), tuple(wanted))
        return found if only is None else [found[list(wanted).index(only)]]
