"""A call whose host code is evaluated from its source, as it is or with other nodes in the place of some."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gradekit.compat.torch import without_symbolic_shapes
from gradekit.engine.budget import Budget, Meter
from gradekit.interpreter.context import Code
from gradekit.interpreter.host_launches import Launches
from gradekit.interpreter.host_walk import HostWalk
from gradekit.interpreter.tile_values import DTYPES, NotWalked, OutsideEverywhere
from gradekit.interpreter.walked_call import WRONG
from gradekit.program import Program
from gradekit.submission.parsed_source import ParsedSource

MOST_WORK = 20_000_000
"""Of one call, in the engine's units."""

FAILS = (*WRONG, OutsideEverywhere)
"""What a walk of host code may raise. Whatever it is, the call is not known, and nothing is said of it."""


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
    """A call of a source, whose host code is walked.

    Args:
        call: what is called.
        program: the call as it was traced: what an autotuner chose is taken from it.
        source: the submission.
        code: its kernels.
    """

    def __init__(self, call: HostCall, program: Program, source: ParsedSource, code: Code) -> None:
        self.call, self.source, self.code = call, source, code
        self._constants = {kernel.name: _chosen(kernel.constants) for kernel in program.kernels.values()}
        self._launches = self._fresh(lenient=False)
        self.walk: HostWalk | None = None
        self.work = self.spent = 0
        self.strays = False  # whether an element outside is touched, so that results are not known

    def _fresh(self, lenient: bool) -> Launches:
        return Launches(self.code, self._constants, self.call.tensors, lenient)

    def run(self, most: int = MOST_WORK, lenient: bool = True) -> list[Tensor | None]:
        """The results as the source is. `walk` has then what was met.

        Raises:
            NotWalked: it cannot be walked, or touches what is outside and is not to be `lenient`; or whatever torch
                and Python raise.
        """
        launches = self._fresh(lenient)
        try:
            return self._results(launches, most, {})
        finally:
            self.work, self.strays = self.spent, launches.strays

    def changed(self, news: Mapping[ast.AST, ast.AST]) -> list[Tensor | None]:
        """The results with other nodes in the place of some. Raises: as `run` does."""
        return self._results(self._launches, 3 * self.work + 1_000_000, news)

    def _results(self, launches: Launches, most: int, news: Mapping[ast.AST, ast.AST]) -> list[Tensor | None]:
        meter = Meter(Budget(most))
        walk = HostWalk(self.source, launches, meter, news)
        self.walk = self.walk or walk
        try:
            return self._called(walk)
        finally:
            self.spent = meter.work

    def _called(self, walk: HostWalk) -> list[Tensor | None]:
        call = self.call
        entry = walk.module.get(call.entry)
        values = [one.detach() if isinstance(one, Tensor) else one for one in call.args]
        if not call.wanted:
            with torch.no_grad():
                return _flat(walk.called_with(entry, values))
        leaves = [values[position].requires_grad_() for position in call.wanted]
        with torch.enable_grad():
            result = walk.called_with(entry, values[:-1])
        if not isinstance(result, Tensor) or result.shape != values[-1].shape:
            raise NotWalked("a result of another shape")
        with without_symbolic_shapes():
            return list(torch.autograd.grad(result, leaves, values[-1], allow_unused=True))


def _chosen(constants: Mapping[str, Any]) -> dict[str, Any]:
    return {name: DTYPES.get(one, one) if isinstance(one, str) else one for name, one in constants.items()}


def _flat(result: Any) -> list[Tensor | None]:
    """The tensors of a result; None for anything else in it."""
    parts: Sequence[Any] = result if isinstance(result, (tuple, list)) else [result]
    return [part.detach() if isinstance(part, Tensor) else None for part in parts]
