"""Runs that an earlier submission has had already: the same program on the same inputs is not run a second time.

In a class many have the same kernel. A program is data, and the engine gives the same run for the same data; so what a
run showed may be told of every submission whose program is the same. Where that was nothing but results, programs are
the same wherever their lines stand and whatever they call things (see sameness.py). Where something was found or
printed, it is told of equal programs alone, to the last line number; which line of whose text that is, each report
says for itself.

Results are kept by their content, for right kernels give the same; what was asked for longest ago goes, and is run again
should somebody want to look at it.

Works in the grader's process; what it keeps lives as long as that.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import torch

from gradekit.engine.run import Counters, Run
from gradekit.findings import Finding
from gradekit.judge.contents import Content, Results, content, versions
from gradekit.program import Program
from gradekit.reuse import LruCache, Shared, SharedCache, shared
from gradekit.subject import sameness
from gradekit.subject.forms import Asked

LARGEST, MOST_BYTES, MOST_RUNS = 2 << 20, 128 << 20, 1 << 16
"""Bytes of a result that is kept, those of all that are, and of how many runs it is known what they showed."""

MOST_PROGRAMS = 1 << 12
"""Programs whose digests are remembered; they stay in memory for it."""


@dataclass(frozen=True)
class Seen:
    """What a run showed: as `engine.run.Run` has it, but its results are made when somebody looks at them."""

    results: Results
    findings: tuple[Finding, ...]
    counters: Counters
    prints: tuple[str, ...]


class Sought:
    """A program as it is looked for: what it does, and exactly what it is, each worked out once if at all."""

    def __init__(self, program: Program) -> None:
        self.program = program

    @cached_property
    def doing(self) -> bytes:
        """The same for programs that do the same."""
        return sameness.of_program(self.program)

    @cached_property
    def exactly(self) -> bytes:
        """The same for equal programs."""
        return sameness.exactly(self.program)


_sought: SharedCache[int, Sought] = shared(MOST_PROGRAMS)


def sought(program: Program) -> Sought:
    """The program as it is looked for; the same for the same object, which tracing gives each submission of one text."""
    found = _sought.get(id(program))
    if found is None or found.program is not program:
        found = Sought(program)
        _sought.put(id(program), found)
    return found


@dataclass(frozen=True)
class Question:
    """What decides a run of a `program` that the call `asked` became: see `engine.run.run`."""

    program: Sought
    option: int
    asked: Asked
    names: tuple[str, ...]
    allow: frozenset[str]

    @property
    def of_results(self) -> Hashable:
        """What decides a run that shows nothing but results."""
        return (self.program.doing, self.option, self.asked, self.allow)

    @property
    def of_all(self) -> Hashable:
        """What decides a run, and how it is told of."""
        return (self.program.exactly, self.option, self.asked, self.allow, self.names)


class Runs:
    """What runs showed, by their questions, and the tensors of their results, by content."""

    def __init__(self) -> None:
        self._known: LruCache[Hashable, _Known] = LruCache(MOST_RUNS)
        self._tensors: LruCache[bytes, _Kept] = LruCache(MOST_BYTES, lambda kept: kept.nbytes, LARGEST)

    def answer(self, question: Question, run: Callable[[], Run]) -> Seen:
        """The answer to `question`: an earlier one, or else what `run` gives. Its results are nobody else's."""
        known = self._known.get(question.of_results)
        if known is not None and not known.is_clean:
            known = self._known.get(question.of_all)
        if known is not None:
            return known.seen(lambda: self._results(known, run))
        return self._keep(question, run())

    def _keep(self, question: Question, run: Run) -> Seen:
        known = _Known.of(run)
        self._known.put(question.of_results, known)
        if not known.is_clean:
            self._known.put(question.of_all, known)
        self._hold(known, run)
        return known.seen(lambda: run.results)

    def _hold(self, known: _Known, run: Run) -> None:
        for told, value in zip(known.results, run.results, strict=True):
            if isinstance(told, Content) and isinstance(value, torch.Tensor):
                self._tensors.put(told.digest, _Kept(value, versions([value])))

    def _results(self, known: _Known, run: Callable[[], Run]) -> Sequence[Any]:
        """Made of what is kept; or by running again, where some of it is not."""
        kept = [self._tensors.get(told.digest) for told in known.results if isinstance(told, Content)]
        if all(one is not None and not one.is_changed for one in kept):
            tensors = (one.tensor.clone() for one in kept if one is not None)
            return [next(tensors) if isinstance(told, Content) else told for told in known.results]
        again = run()
        self._hold(known, again)
        return again.results


def unshared(run: Run) -> Seen:
    """What a run showed of which nothing can be told of another."""
    return _Known.of(run).seen(lambda: run.results)


@dataclass(frozen=True)
class _Known:
    """What a run showed, with the Content of each tensor in its place."""

    results: tuple[Any, ...]
    findings: tuple[Finding, ...]
    counters: Counters
    prints: tuple[str, ...]

    @staticmethod
    def of(run: Run) -> _Known:
        told = [content(value) if isinstance(value, torch.Tensor) else value for value in run.results]
        return _Known(tuple(told), tuple(run.findings), run.counters, tuple(run.prints))

    @property
    def is_clean(self) -> bool:
        """Whether there is nothing to tell of it but results."""
        return not self.findings and not self.prints

    def seen(self, make: Callable[[], Sequence[Any]]) -> Seen:
        return Seen(Results(self.results, make), self.findings, replace(self.counters), self.prints)


class _Kept(NamedTuple):
    """A tensor that a run gave, and that whoever saw it may have changed since it had these `versions`."""

    tensor: torch.Tensor
    versions: list[int]

    @property
    def nbytes(self) -> int:
        return self.tensor.untyped_storage().nbytes()

    @property
    def is_changed(self) -> bool:
        return versions([self.tensor]) != self.versions


runs = Shared(Runs)
"""What the runs of earlier submissions showed."""
