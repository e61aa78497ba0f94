"""Some programs of a call that is too large to be run as a whole: what they write is compared with the reference.

Programs are independent where nothing orders them: no atomics, and no step that uses what the launch makes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from gradekit.engine.budget import Budget, OverBudget
from gradekit.engine.def_use import ATOMICS
from gradekit.engine.executor import RunResult, Setup, run_setup
from gradekit.engine.kernel_facts import every_operation, facts, parsed
from gradekit.engine.observer import Owners
from gradekit.program import Launch, Program, run_steps
from gradekit.subject import Limit


@dataclass(frozen=True)
class SomePrograms:
    """Of one `launch` of a call, by its number, the linear `ids` of those that are run; and what they `wrote`."""

    program: Program
    launch: int
    ids: Sequence[int]
    wrote: Owners = field(default_factory=Owners)
    results: list[Any] = field(default_factory=list)

    @staticmethod
    def of(program: Program, option: int) -> SomePrograms:
        """Of the last launch, those at the ends of its grid and some between them. Raises OverBudget where they depend
        on others, and none can be run alone; or there are not many more than so many."""
        steps = [*run_steps(program.steps, option)]
        launches = [step for step in steps if isinstance(step, Launch)]
        if not launches or steps[-1] is not launches[-1]:
            raise OverBudget("programs", 0)
        ttir, grid = program.kernels[launches[-1].kernel].unaligned, launches[-1].grid
        x, y, z = ({0, 1, n // 2, n - 2, n - 1} & {*range(n)} for n in grid)
        ends = (i + grid[0] * (j + grid[1] * k) for i, j, k in itertools.product(x, y, z))
        total = math.prod(grid)
        ids = {*ends, *range(0, total, max(total // Limit.SPREAD, 1))}
        depend = facts(ttir).ordered or any(op.name in ATOMICS for op in every_operation(parsed(ttir)))
        if depend or 2 * len(ids) > total:
            raise OverBudget("programs", 0 if depend else len(ids))
        return SomePrograms(program, len(launches) - 1, sorted(ids))

    def run(self, inputs: Sequence[torch.Tensor], option: int, allow: Collection[str], budget: Budget) -> RunResult:
        """What comes of them alone; raises what `gradekit.engine.run` does."""
        programs = {self.launch: self.ids}
        setup = Setup(self.program, inputs, option, allow, observer=self.wrote, programs=programs)
        ran = run_setup(setup, budget)
        self.results[:] = ran.results
        return ran

    def together(self, expected: Sequence[torch.Tensor]) -> list[Any]:
        """What is expected of the call, with the elements that they wrote in place of its own."""
        found = zip(self.program.results, self.results, expected, strict=False)
        return [self._where(view, mine, wanted) for view, mine, wanted in found]

    def _where(self, view: Any, mine: Any, wanted: torch.Tensor) -> Any:
        if not isinstance(mine, torch.Tensor) or (mine.shape, mine.dtype) != (wanted.shape, wanted.dtype):
            return mine
        return torch.where(self.wrote.written(view, self.launch), mine, wanted)
