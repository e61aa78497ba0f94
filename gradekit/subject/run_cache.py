"""Runs of earlier submissions: the engine gives the same run for the same program on the same inputs, so it runs once.

In a class many have the same kernel. Where a run gave nothing but results, its record serves every program that
computes the same, whatever its names and line numbers (see digest.py). Where something was found or printed, it serves
equal programs alone, for a finding names lines and variables.

A record is the run with a Content in place of each result tensor: right kernels give equal ones. A result that has
been evicted is made again, by running, when somebody looks at it.

Works in the grader's process; see gradekit.reuse for how long it keeps anything.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import torch

from gradekit.engine.executor import RunResult
from gradekit.judge.contents import Content, Results, content, versions
from gradekit.program import Program
from gradekit.reuse import LruCache, Shared, SharedCache, shared
from gradekit.subject import digest
from gradekit.subject.call_spec import CallSpec

LARGEST, MOST_BYTES, MOST_RUNS = 2 << 20, 64 << 20, 1 << 14
"""Limits: bytes of one result, bytes of all results, number of run records."""


def _is_clean(run: RunResult) -> bool:
    """Whether a run showed nothing but results."""
    return not run.findings and not run.prints


def _contents(run: RunResult) -> list[Any]:
    return [content(value) if isinstance(value, torch.Tensor) else value for value in run.results]


def _made_by(record: RunResult, make: Callable[[], Sequence[Any]]) -> RunResult:
    """A record of the cache as a caller gets it: its results are made when somebody looks at them."""
    results: Any = Results(tuple(record.results), make)
    return replace(record, results=results, counters=replace(record.counters))


class ProgramDigests:
    """The digests of a program, each computed at its first use."""

    def __init__(self, program: Program) -> None:
        self.program = program

    @cached_property
    def by_effect(self) -> bytes:
        """Equal for programs that compute the same."""
        return digest.of_program(self.program)

    @cached_property
    def by_text(self) -> bytes:
        """Equal for equal programs."""
        return digest.exactly(self.program)


_digests: SharedCache[int, ProgramDigests] = shared(1 << 11)
"""Their programs stay in memory with them: as many as one submission has, or two."""


def digests_of(program: Program) -> ProgramDigests:
    """The digests of `program`; the tracer gives equal submissions the same object, so that they share them."""
    found = _digests.get(id(program))
    if found is None or found.program is not program:
        found = ProgramDigests(program)
        _digests.put(id(program), found)
    return found


@dataclass(frozen=True)
class RunKey:
    """All that a run depends on: the program that the call `spec` was traced to, and the
    arguments of `engine.executor.run`."""

    program: ProgramDigests
    option: int
    spec: CallSpec
    names: tuple[str, ...]
    allow: frozenset[str]

    @property
    def by_effect(self) -> Hashable:
        """The key of a run that shows nothing but results."""
        return (self.program.by_effect, self.option, self.spec, self.allow)

    @property
    def by_text(self) -> Hashable:
        """The key of a run whose findings or prints name lines and variables."""
        return (self.program.by_text, self.option, self.spec, self.allow, self.names)


class RunCache:
    """Run records by their keys, and the tensors of their results by content."""

    def __init__(self) -> None:
        self._entries: LruCache[Hashable, RunResult] = LruCache(MOST_RUNS)
        self._tensors: LruCache[bytes, _Tensor] = LruCache(MOST_BYTES, lambda kept: kept.nbytes, LARGEST)

    def get_or_run(self, key: RunKey, run: Callable[[], RunResult]) -> RunResult:
        """The record of `key`: an earlier run's, or else that of `run()`. The caller owns its results."""
        entry = self._entries.get(key.by_effect)
        if entry is not None and not _is_clean(entry):
            entry = self._entries.get(key.by_text)
        if entry is not None:
            return _made_by(entry, lambda: self._results(entry.results, run))
        made = run()
        if made.variants:
            return uncached(made)
        record = replace(made, results=_contents(made))
        self._entries.put(key.by_effect, record)
        if not _is_clean(record):
            self._entries.put(key.by_text, record)
        self._add_tensors(record.results, made)
        return _made_by(record, lambda: made.results)

    def _add_tensors(self, contents: Sequence[Any], run: RunResult) -> None:
        for stored, value in zip(contents, run.results, strict=True):
            if isinstance(stored, Content) and isinstance(value, torch.Tensor):
                self._tensors.put(stored.digest, _Tensor(value, versions([value])))

    def _results(self, contents: Sequence[Any], run: Callable[[], RunResult]) -> Sequence[Any]:
        """Copies of the cached tensors; where one was evicted or changed since, the results of another run."""
        cached = [self._tensors.get(stored.digest) for stored in contents if isinstance(stored, Content)]
        if all(one is not None and not one.is_changed for one in cached):
            tensors = (one.tensor.clone() for one in cached if one is not None)
            return [next(tensors) if isinstance(stored, Content) else stored for stored in contents]
        again = run()
        self._add_tensors(contents, again)
        return again.results


def uncached(run: RunResult, make: Callable[[], Sequence[Any]] | None = None) -> RunResult:
    """The record of a run that is kept for nobody else; its results are what `make` gives, where that is given."""
    return _made_by(replace(run, results=_contents(run)), make or (lambda: run.results))


class _Tensor(NamedTuple):
    """A result, with torch's version counters as they were when it was stored: a
    caller may have written to it since."""

    tensor: torch.Tensor
    versions: list[int]

    @property
    def nbytes(self) -> int:
        return self.tensor.untyped_storage().nbytes()

    @property
    def is_changed(self) -> bool:
        return versions([self.tensor]) != self.versions


runs = Shared(RunCache)
"""The cache in use now."""
