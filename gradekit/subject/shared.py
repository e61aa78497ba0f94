"""Runs that an earlier submission has had already: the same program on the same inputs is not run a second time.

In a class many have the same kernel, line for line. A program is data, and the engine gives the same run for the same
data; so what a run showed may be told of every submission whose program is the same to the last line number. Which line
of whose text that is, each report says for itself.

Works in the grader's process; what it keeps lives as long as that.
"""

from __future__ import annotations

import collections
import hashlib
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from gradekit.engine.run import Run
from gradekit.inputs.strategies import sharing
from gradekit.program import Program

LARGEST, MOST_BYTES, MOST_RUNS = 2 << 20, 128 << 20, 1 << 14
"""Bytes of the results of a run that is kept, those of all that are, and how many are."""


@dataclass(frozen=True)
class Question:
    """What decides a run. `program` is its `digest`; `inputs` has a place for each argument, by which equal specs that
    are one tensor are told from those that are two."""

    program: bytes
    option: int
    inputs: tuple[Hashable, ...]
    names: tuple[str, ...]
    allow: frozenset[str]


def question(
    program: bytes, option: int, args: Sequence[Any], names: Sequence[str], allow: Collection[str]
) -> Question | None:
    """The question of a run on `args`; None where one of them is a tensor, of which nobody knows where it comes from."""
    if any(isinstance(arg, torch.Tensor) for arg in args):
        return None
    told = [(type(arg), repr(arg) if isinstance(arg, float) else arg) for arg in args]
    inputs = tuple(zip(told, sharing(args), strict=True))
    return Question(program, option, inputs, tuple(names), frozenset(allow))


def digest(program: Program) -> bytes:
    """What tells a program from every other: 32 bytes, the same in every process."""
    text = repr((replace(program, kernels={}), sorted((key, repr(k)) for key, k in program.kernels.items())))
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).digest()


class Shelf:
    """Runs by their questions, those asked for last."""

    def __init__(self) -> None:
        self._runs: collections.OrderedDict[Question, Run] = collections.OrderedDict()
        self._bytes = 0

    def answer(self, question: Question | None, run: Callable[[], Run]) -> Run:
        """The answer to `question`: an earlier one, or else what `run` gives."""
        if question is None:
            return run()
        known = self._runs.get(question)
        if known is not None:
            self._runs.move_to_end(question)
            return _copy(known)
        made = run()
        self._keep(question, made)
        return made

    def _keep(self, question: Question, run: Run) -> None:
        size = _bytes(run)
        if size > LARGEST:
            return
        self._runs[question] = _copy(run)
        self._bytes += size
        while self._bytes > MOST_BYTES or len(self._runs) > MOST_RUNS:
            self._bytes -= _bytes(self._runs.popitem(last=False)[1])


def _copy(run: Run) -> Run:
    """The run with results of its own: who gets it may change them."""
    results = [value.clone() if isinstance(value, torch.Tensor) else value for value in run.results]
    return Run(results, list(run.findings), replace(run.counters), list(run.prints))


def _bytes(run: Run) -> int:
    return sum(value.untyped_storage().nbytes() for value in run.results if isinstance(value, torch.Tensor))


shelf = Shelf()
"""The runs of this process."""
