"""What a search for a mend is given of a check that failed: its examples, each with what runs and judges it, and what
walks find of them with other texts."""

import contextlib
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from gradekit.causes import Cause
from gradekit.credit import awarding
from gradekit.engine.budget import OverBudget
from gradekit.findings import Kind
from gradekit.interpreter.tile_values import NotWalked
from gradekit.judge.failure import Failure
from gradekit.program import Program
from gradekit.repair.walked_submission import WalkedSubmission
from gradekit.repair.work import Limit
from gradekit.subject.subject import Call, Subject
from gradekit.submission.parsed_source import ParsedSource

Judge = Callable[["Subject | WalkedSubmission"], BaseException | None]
"""Traces, runs and judges an example on a text of the submission: what that raises, None where it is right."""


@dataclass(frozen=True)
class Example:
    """An example of a `check`, told from others by its `key`: how many `elements` its inputs have (0 where that is not
    known), whether one is strided, and whether the check `compares` results. `traits` are what it shares with others: a
    dtype, a layout, a kind of values."""

    key: Hashable
    judge: Judge = field(compare=False)
    check: str = ""
    compares: bool = field(default=True, compare=False)
    elements: int = field(default=0, compare=False)
    is_strided: bool = field(default=False, compare=False)
    traits: frozenset[Hashable] = field(default=frozenset(), compare=False)

    def run(self, subject: Subject | WalkedSubmission) -> BaseException | None:
        """What it raises on a subject."""
        with awarding():
            return self.judge(subject)

    def failure(self, subject: Subject, kernel: str) -> BaseException | None:
        """What it raises, where a `kernel` ("" for any) takes part in it or does not compile; None where it passes, or
        took longer than a try may."""
        subject.forget_calls()
        error = self.run(subject)
        is_refused = getattr(error, "cause", None) is Cause.COMPILATION_ERROR
        concerned = not subject.calls or is_refused or any(_launches(call, kernel) for call in subject.calls)
        return error if concerned and not is_too_long(error) else None


@dataclass(frozen=True)
class FailedCheck:
    """A check that failed, by its `name`, with what it raised in a call.

    Attributes:
        example: that in which it failed; None where the check has none, and `judge` runs it, or the `call` alone does.
        others: examples of the check beside it that a mend must make right, too.
        failed: those of its examples that failed as well.
    """

    name: str
    kind: Kind
    error: Failure
    call: Call
    example: Example | None = None
    others: Sequence[Example] = ()
    failed: Sequence[Example] = ()
    judge: Judge | None = None

    @property
    def tried(self) -> list[Example]:
        """The examples on which every mend is tried."""
        return [one for one in (self.example, *self.others) if one is not None]

    def again(self, subject: Subject | WalkedSubmission) -> BaseException | None:
        """What its failing example raises on a subject."""
        judge = self.example.run if self.example is not None else self.judge
        subject.forget_calls()
        return judge(subject) if judge is not None else None


class WalkedExamples:
    """What becomes of examples of checks with a text that is walked, each once. An autotuner chooses what it chose in
    `program`, another call."""

    def __init__(self, text: str, program: Program) -> None:
        source = ParsedSource.parsed(text)
        self._submission = WalkedSubmission(source, program) if source is not None else None
        self._known: dict[Example, BaseException | None] = {}
        self._in_vain = 0
        self._too_many = math.inf  # elements of the smallest example whose walk took too much work

    def error(self, example: Example) -> BaseException | None:
        """What an example raises on the text: None where it is right, a Failure where it is wrong,
        anything else where that is not known."""
        if example not in self._known:
            is_too_large = self._too_many <= example.elements > 0
            if self._submission is None or self._in_vain == Limit.IN_VAIN or is_too_large:
                return NotWalked("a text that cannot be walked")
            self._known[example] = error = example.run(self._submission)
            if isinstance(error, OverBudget):
                self._too_many = min(self._too_many, example.elements or math.inf)
            else:
                self._in_vain = 0 if error is None or isinstance(error, Failure) else self._in_vain + 1
        return self._known[example]


def unlike(examples: Sequence[Example], most: int, seen: Iterable[Hashable] = ()) -> Iterator[Example]:
    """The examples in an order in which each has as many traits as can be that none before it has."""
    left, known = list(examples), set(seen)
    for _ in range(min(most, len(left))):
        best = max(left, key=lambda one: len(one.traits - known))
        left.remove(best)
        known |= best.traits
        yield best


def is_too_long(error: BaseException | None) -> bool:
    """Whether an example takes more work than a try may use, and nothing went wrong in memory before; the submission
    itself may use more."""
    return getattr(error, "told", getattr(error, "cause", None)) is Cause.BUDGET_EXCEEDED


def _launches(call: Any, kernel: str) -> bool:
    program = call.observation.program if call.observation is not None else None
    launched = [program.kernels[launch.kernel].name for launch in program.launches()] if program is not None else []
    return program is not None and (not kernel or kernel in launched)


@contextlib.contextmanager
def untouched(subject: Subject) -> Iterator[None]:
    """Forgets the calls that are made inside, and what they show."""
    kept, found_in_memory = list(subject.calls), dict(subject.found_in_memory)
    subject.forget_calls()
    try:
        yield
    finally:
        subject.calls[:] = kept
        subject.found_in_memory = found_in_memory
