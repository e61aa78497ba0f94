"""A call on which changes are tried: what it was given, what it gave, and what is right."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gradekit.compat.torch import without_symbolic_shapes
from gradekit.engine.budget import AGAIN, Budget, Meter
from gradekit.engine.memory import view_bytes
from gradekit.interpreter import Limit
from gradekit.interpreter.host_walk import HostWalk, Launches
from gradekit.interpreter.tile_values import NotWalked
from gradekit.interpreter.walk import Code
from gradekit.interpreter.walked_call import constants_of
from gradekit.program import Copy, Program, View
from gradekit.submission.parsed_source import ParsedSource

IsRight = Callable[[Sequence[Tensor | None]], bool]

OfEach = Callable[[Sequence[Tensor | None]], Tensor]
"""Something of each of several copies of the results, which come first among the dimensions of each result."""


@dataclass(frozen=True)
class ShownCall:
    """One call on which changes are tried.

    Attributes:
        program: as it was traced.
        inputs: its tensors.
        results: as they were.
        is_right: whether results are right; where the call may stay as wrong as it was, whether they are no worse.
        wrong: of several copies of the results, how many elements of each are wrong.
        host: what host code was called with, where that is known.
        mended: whether results are right, where `is_right` lets the call stay wrong.
        may_be: of several copies of the results, which may be right: it costs little, and leaves out most.
        compared: the numbers of the results that are compared; None for all.
        astray: whether it went out of bounds, so that its results are not known.
        alone: whether no element may be stored to by several programs: it is right but for what it does in memory.
        lacks: what all of a result must be multiplied by, where that is one number and all that is wrong.
    """

    program: Program
    inputs: Sequence[Tensor]
    results: Sequence[Tensor | None]
    is_right: IsRight
    wrong: OfEach | None = None
    host: HostCall | None = None
    mended: IsRight | None = None
    may_be: OfEach | None = None
    compared: tuple[int, ...] | None = None
    astray: bool = False
    alone: bool = False
    lacks: float | None = None

    def is_given_by(self, results: Sequence[Tensor | None], strays: bool) -> bool:
        """Whether the results of a walk are those that were seen; True where accesses are out of bounds."""
        return strays or self.astray or is_like(results, self.results)


def is_like(results: Sequence[Tensor | None], seen: Sequence[Tensor | None]) -> bool:
    """Whether results are those that were seen, but for rounding."""
    return len(results) == len(seen) and all(map(alike, results, seen))


def alike(mine: Any, seen: Any) -> bool:
    """Whether a result is that which was seen, but for rounding; True of what is no tensor."""
    if not isinstance(seen, Tensor) or not isinstance(mine, Tensor):
        return True
    off = Limit.OFF_IN_BFLOAT16 if seen.dtype is torch.bfloat16 else Limit.OFF
    is_one = mine.shape == seen.shape
    return is_one and torch.allclose(mine.double(), seen.double(), rtol=off, atol=off, equal_nan=True)


# --- its host code, as it is or with other nodes in the place of some -------------------------------------------------


@dataclass(frozen=True)
class HostCall:
    """`entry(*args)`, or where gradients are `wanted` of the arguments at these positions, its backward pass, with the
    gradient of the result as the last of `args`. Tensors are contiguous, or strided as the call's are."""

    entry: str
    args: tuple[Any, ...]
    wanted: tuple[int, ...] = ()

    @property
    def tensors(self) -> list[Tensor]:
        """Those among the arguments."""
        return [one for one in self.args if isinstance(one, Tensor)]


class HostReplay:
    """A call of a source, whose host code is walked. What an autotuner chose is taken from its traced `program`."""

    def __init__(self, call: HostCall, program: Program, source: ParsedSource, code: Code) -> None:
        self.call, self.source, self.code = call, source, code
        self._program, self._in_place = program, {} if call.wanted else written_in_place(program)
        self._constants = {kernel.name: constants_of(kernel) for kernel in program.kernels.values()}
        self._launches = self._fresh(lenient=False)
        self.walk: HostWalk | None = None
        self.work = self.spent = 0
        self.strays = False  # whether an element outside is touched, so that results are not known
        self.launched: list[list[int]] = []  # in the call as it is, and in each that was changed
        self.in_vain: list[Counter[tuple[str, int]]] = []  # what programs do in vain, as in `Launches`

    def _fresh(self, lenient: bool) -> Launches:
        written = self._in_place.values()
        inputs = [one for number, one in enumerate(self.call.tensors) if number not in written]
        launches = Launches(self.code, self._constants, inputs, lenient)
        launches.processors = self._program.multiprocessors
        return launches

    def run(self, most: int = AGAIN, lenient: bool = True) -> list[Tensor | None]:
        """The results as the source is; `walk` has what was met. Unless `lenient`, it touches nothing outside."""
        launches = self._fresh(lenient)
        launches.is_noted = lenient
        try:
            return self._results(launches, most, {})
        finally:
            self.work, self.strays = self.spent, launches.strays

    def changed(self, news: Mapping[ast.AST, ast.AST]) -> list[Tensor | None]:
        """The results with other nodes in the place of some."""
        return self._results(self._launches, 3 * self.work + 1_000_000, news)

    @property
    def does_more_in_vain(self) -> bool:
        """Whether with the last change programs of some kernel do more in vain than in the call as it is."""
        return bool(self.in_vain[-1] - self.in_vain[0])

    def _results(self, launches: Launches, most: int, news: Mapping[ast.AST, ast.AST]) -> list[Tensor | None]:
        meter = Meter(Budget(most))
        launches.launched, launches.in_vain = [], Counter()
        self.launched.append(launches.launched)
        self.in_vain.append(launches.in_vain)
        walk = HostWalk(self.source, launches, meter, news)
        self.walk = self.walk or walk
        try:
            return self._called(walk)
        finally:
            self.spent = meter.work

    def _called(self, walk: HostWalk) -> list[Tensor | None]:
        call = self.call
        entry = walk.module.get(call.entry)
        written = {number: _copied(call.tensors[number]) for number in self._in_place.values()}
        tensors = iter([written.get(number, one.detach()) for number, one in enumerate(call.tensors)])
        values = [next(tensors) if isinstance(one, Tensor) else one for one in call.args]
        if not call.wanted:
            with torch.no_grad():
                returned = _flat(walk.called_with(entry, values))
            return self._with_written(returned, written) if written else returned
        leaves = [values[position].requires_grad_() for position in call.wanted]
        with torch.enable_grad():
            result = walk.called_with(entry, values[:-1])
        if not isinstance(result, Tensor) or result.shape != values[-1].shape:
            raise NotWalked("a result of another shape")
        with without_symbolic_shapes():
            return list(torch.autograd.grad(result, leaves, values[-1], allow_unused=True))

    def _with_written(self, returned: Sequence[Tensor | None], written: Mapping[int, Tensor]) -> list[Tensor | None]:
        """The results: what was written in place, and between these what the call returns."""
        own = {one.untyped_storage().data_ptr() for one in written.values()}
        others = (one for one in returned if one is None or one.untyped_storage().data_ptr() not in own)
        places = (self._in_place.get(number) for number in range(len(self._program.results)))
        return [next(others, None) if place is None else written[place] for place in places]


def written_in_place(program: Program) -> dict[int, int]:
    """Of each result that is an argument which the call may write (see gradekit.subject.written), the number of the
    input that it begins as, by the result's own."""
    begun = {step.target: step.origin for step in program.steps if isinstance(step, Copy) and step.source is None}
    origins = {number: begun.get(view) for number, view in enumerate(program.results) if isinstance(view, View)}
    return {number: program.inputs.index(view) for number, view in origins.items() if view in program.inputs}


def _copied(tensor: Tensor) -> Tensor:
    data = view_bytes(tensor).clone().view(tensor.dtype)
    return data.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())


def _flat(result: Any) -> list[Tensor | None]:
    """The tensors of a result; None for anything else in it."""
    parts: Sequence[Any] = result if isinstance(result, (tuple, list)) else [result]
    return [part.detach() if isinstance(part, Tensor) else None for part in parts]
