"""Runs of earlier submissions: the engine gives the same run for the same program on the same inputs, so it runs once.

In a class many have the same kernel. Where a run gave nothing but results, its record serves every program that
computes the same, whatever its names and line numbers (see digest.py). Where something was found or printed, it serves
nobody else, for a finding names lines and variables.

A record is the run with a Content in place of each result tensor: right kernels give equal ones, which were compared
already. Small tensors are kept, too; who looks at another of an earlier run has it made again, by running.
"""

import hashlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import astuple, replace
from typing import Any

import torch

from gradekit.engine.executor import RunResult
from gradekit.judge.contents import Content, Results, TensorCache, content
from gradekit.observations import Counters
from gradekit.program import Program
from gradekit.reuse import LruCache, Shared, SharedCache, shared
from gradekit.subject import digest
from gradekit.subject.call_spec import CallSpec
from gradekit.wire import ForkedCache


def key_of(program: Program, option: int, spec: CallSpec, allow: Collection[str]) -> bytes:
    """All that a run depends on, the same in every process: its program, the call `spec` and the engine's arguments."""
    return hashlib.sha256(repr((digest.of_program(program), option, spec.key, sorted(allow))).encode()).digest()


def _contents(run: RunResult) -> list[Any]:
    return [content(value) if isinstance(value, torch.Tensor) else value for value in run.results]


def _made_by(record: RunResult, make: Callable[[], Sequence[Any]]) -> RunResult:
    """A record of the cache as a caller gets it: its results are made when somebody looks at them."""
    results: Any = Results(tuple(record.results), make)
    return replace(record, results=results, counters=replace(record.counters))


class RunCache:
    """Records of runs that have shown nothing but results, by their keys; with `in_class`, those of all forks."""

    def __init__(self, records: LruCache[bytes, RunResult] | None = None) -> None:
        self._entries: LruCache[bytes, RunResult] = LruCache() if records is None else records
        self._results = TensorCache(lambda results: [one for one in results if isinstance(one, torch.Tensor)])
        self.in_class: ForkedCache | None = None

    def get_or_run(self, key: bytes, run: Callable[[], RunResult]) -> RunResult:
        """The record of `key`: an earlier run's, or else that of `run()`. The caller owns its results."""
        record = self._entries.get(key)
        if record is None and self.in_class is not None and (data := self.in_class.get(key)) is not None:
            record = _from_data(*data)
        if record is not None:
            return _made_by(record, lambda: self._results.get_or_make(key, lambda: run().results))
        made = run()
        if made.findings or made.prints or made.variants:
            return uncached(made)
        record = replace(made, results=_contents(made))
        self._entries.put(key, record)
        self._results.get_or_make(key, lambda: made.results)
        if self.in_class is not None:
            self.in_class.put(key, _as_data(record))
        return _made_by(record, lambda: made.results)


def _as_data(record: RunResult) -> list[Any]:
    results = [[value.digest.hex(), value.nbytes] if isinstance(value, Content) else value for value in record.results]
    return [results, astuple(record.counters), record.in_place, [[*at, way] for at, way in record.ways.items()]]


def _from_data(results: list[Any], counters: list[int], in_place: bool, ways: list[list[int]]) -> RunResult:
    contents: list[Any] = [Content(bytes.fromhex(v[0]), v[1]) if isinstance(v, list) else v for v in results]
    seen = {(launch, op): way for launch, op, way in ways}
    return RunResult(contents, [], Counters(*counters), in_place=in_place, ways=seen)


def uncached(run: RunResult, make: Callable[[], Sequence[Any]] | None = None) -> RunResult:
    """The record of a run that is kept for nobody else; its results are what `make` gives, where that is given."""
    return _made_by(replace(run, results=_contents(run)), make or (lambda: run.results))


_records: SharedCache[bytes, RunResult] = shared()
runs = Shared(lambda: RunCache(_records.current))  # the cache in use now
