"""Runs of earlier submissions: the engine gives the same run for the same program on the same inputs, so it runs once.

In a class many have the same kernel. Where a run gave nothing but results, its record serves every program that
computes the same, whatever its names and line numbers (see digest.py). Where something was found or printed, it serves
equal programs alone, for a finding names lines and variables.

A record is the run with a Content in place of each result tensor: right kernels give equal ones, which were compared
already. Who looks at a result of an earlier run has it made again, by running.

Works in the grader's process; see gradekit.reuse for how long it keeps anything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any

import torch

from gradekit.engine.executor import RunResult
from gradekit.judge.contents import Content, Results, content
from gradekit.observations import Counters
from gradekit.program import Program
from gradekit.reuse import ForkedCache, LruCache, Shared
from gradekit.subject import digest
from gradekit.subject.call_spec import CallSpec

MOST_RUNS, CLASS_BYTES = 1 << 14, 64 << 20
"""Limits: the run records that one process keeps, and the bytes of those that the graders of a class share."""


def _is_clean(run: RunResult) -> bool:
    """Whether a run showed nothing but results."""
    return not run.findings and not run.prints


def _contents(run: RunResult) -> list[Any]:
    return [content(value) if isinstance(value, torch.Tensor) else value for value in run.results]


def _made_by(record: RunResult, make: Callable[[], Sequence[Any]]) -> RunResult:
    """A record of the cache as a caller gets it: its results are made when somebody looks at them."""
    results: Any = Results(tuple(record.results), make)
    return replace(record, results=results, counters=replace(record.counters))


@dataclass(frozen=True)
class RunKey:
    """All that a run depends on: the program that the call `spec` was traced to, and the
    arguments of `engine.executor.run`."""

    program: Program
    option: int
    spec: CallSpec
    names: tuple[str, ...]
    allow: frozenset[str]

    @property
    def by_effect(self) -> bytes:
        """The key of a run that shows nothing but results, the same in every process."""
        return self._digest(digest.of_program(self.program))

    @property
    def by_text(self) -> bytes:
        """The key of a run whose findings or prints name lines and variables."""
        return self._digest(digest.exactly(self.program), self.names)

    def _digest(self, *told: object) -> bytes:
        text = repr((told, self.option, self.spec.key, sorted(self.allow)))
        return hashlib.sha256(text.encode("utf-8", "backslashreplace")).digest()


class RunCache:
    """Run records by their keys. With `in_class`, those that show nothing but results are found in every fork of the
    process, whichever of them ran."""

    def __init__(self) -> None:
        self._entries: LruCache[bytes, RunResult] = LruCache(MOST_RUNS)
        self.in_class: ForkedCache | None = None

    def get_or_run(self, key: RunKey, run: Callable[[], RunResult]) -> RunResult:
        """The record of `key`: an earlier run's, or else that of `run()`. The caller owns its results."""
        effect = key.by_effect
        entry = self._entries.get(effect)
        if entry is None and self.in_class is not None and (data := self.in_class.get(effect)) is not None:
            entry = _from_data(*data)
        if entry is not None and not _is_clean(entry):
            entry = self._entries.get(key.by_text)
        if entry is not None:
            return _made_by(entry, lambda: run().results)
        made = run()
        if made.variants:
            return uncached(made)
        record = replace(made, results=_contents(made))
        self._entries.put(effect, record)
        if not _is_clean(record):
            self._entries.put(key.by_text, record)
        elif self.in_class is not None:
            self.in_class.put(effect, _as_data(record))
        return _made_by(record, lambda: made.results)


def _as_data(record: RunResult) -> list[Any]:
    """A record that shows nothing but results, as JSON has it."""
    results = [[value.digest.hex(), value.nbytes] if isinstance(value, Content) else value for value in record.results]
    return [results, astuple(record.counters), record.in_place, [[*at, way] for at, way in record.ways.items()]]


def _from_data(results: list[Any], counters: list[int], in_place: bool, ways: list[list[int]]) -> RunResult:
    contents: list[Any] = [Content(bytes.fromhex(v[0]), v[1]) if isinstance(v, list) else v for v in results]
    seen = {(launch, op): way for launch, op, way in ways}
    return RunResult(contents, [], Counters(*counters), in_place=in_place, ways=seen)


def uncached(run: RunResult, make: Callable[[], Sequence[Any]] | None = None) -> RunResult:
    """The record of a run that is kept for nobody else; its results are what `make` gives, where that is given."""
    return _made_by(replace(run, results=_contents(run)), make or (lambda: run.results))


runs = Shared(RunCache)
"""The cache in use now."""
