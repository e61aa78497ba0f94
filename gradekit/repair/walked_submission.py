"""A text of the submission that answers calls by a walk of its source (see gradekit.repair), where that can be
walked: a small part of what it costs to trace and run them. What a walk finds right is taken for right; it blames
nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from gradekit.inputs.spec import Input
from gradekit.interpreter.shown_call import HostCall, HostReplay
from gradekit.interpreter.tile_values import NotWalked
from gradekit.interpreter.walked_call import code_of
from gradekit.program import Program
from gradekit.repair.work import Limit
from gradekit.submission.parsed_source import ParsedSource


class WalkedSubmission:
    """What tests can call in the place of a submission: each function of the `source`. A call gives tensors, or raises
    what a walk raises, `NotWalked` among others."""

    def __init__(self, source: ParsedSource, program: Program) -> None:
        self.text, self._source, self._program, self._code = source.text, source, program, code_of(source)

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
        return WalkedResults(found)


class WalkedResults(list[Tensor]):
    """The results of a walked call, of which tests may ask for the only one as they ask an observation."""

    @property
    def tensor(self) -> Tensor:
        """The only result."""
        return self[0]


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
