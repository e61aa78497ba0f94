"""Single programs of a launch run on the engine, on storages that do not exist: where
they touch memory is written down.

So a refutation for sizes that no machine could hold is looked at without any of that memory. What is loaded is zero: an
address that depends on data says nothing.
"""

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from gradekit.engine.budget import Budget, Meter, OverBudget, Unsupported
from gradekit.engine.frame import Frame, LaunchContext
from gradekit.engine.kernel_facts import facts, parsed
from gradekit.engine.lanes import Access, flat_index, flat_mask
from gradekit.engine.launch import bind, run_programs
from gradekit.engine.memory import Memory, Storage
from gradekit.engine.observer import TouchedElements
from gradekit.engine.observer import touched as touched_by
from gradekit.engine.traffic import CountingMemory
from gradekit.engine.ttir import Module, Op
from gradekit.engine.values import Value
from gradekit.observations import Traffic
from gradekit.program import ADDRESS_GAP, Launch, Program, View
from gradekit.prove import Limit


def touched(
    module: Module, ttir: str, launch: Launch, linear: Sequence[int], path: str
) -> list[tuple[Op, TouchedElements]]:
    """What the programs with these linear ids touch, operation by operation."""
    found, storages = list[tuple[Op, TouchedElements]](), Memory()

    def observe(frame: Frame, op: Op) -> None:
        if (seen := touched_by(frame, op, storages)) is not None:
            found.append((op, seen))

    memory, meter = CountingMemory(Traffic(), set(), []), Meter(Budget(work=Limit.PROBE_WORK))
    context = LaunchContext(module, facts(ttir), launch.grid, memory, meter, 0, "", path, observe=observe)
    _run(context, launch, storages, linear)
    return found


def _run(context: LaunchContext, launch: Launch, storages: Memory, linear: Sequence[int]) -> None:
    for argument in launch.args:
        view = getattr(argument, "view", argument)
        if hasattr(view, "storage"):
            empty = torch.empty(0, dtype=torch.uint8)
            storages.storages[view.storage] = Storage(view.storage, empty, (view.storage + 1) * ADDRESS_GAP)
    run_programs(context, bind(context.module.entry, launch.args, storages), linear)


def stored_by_some(program: Program, near: Sequence[int] = (0,), far: bool = True) -> tuple[torch.Tensor, torch.Tensor]:
    """Elements of the result of a call that may be of any size, int64 and ascending, with what some programs store
    there where all that is loaded is 1: those that come to the elements `near` where elements are dealt out in order
    and, if `far`, those whose place along an axis of the grid is a power of two or the last; as far as work allows."""
    result = next(view for view in program.results if isinstance(view, View))
    parts, meter = [(torch.empty(0, dtype=torch.int64), torch.empty(0))], Meter(Budget(work=Limit.PROBE_WORK))
    for launch in program.every_launch:
        ttir, memory = program.kernels[launch.kernel].unaligned, _OfOnes(Traffic(), set(), [])
        context = LaunchContext(parsed(ttir), facts(ttir), launch.grid, memory, meter, 0, "", program.path)
        some = _some(launch.grid, [n for n in near if n < result.numel], far, result.numel)
        with contextlib.suppress(OverBudget, Unsupported):
            _run(context, launch, Memory(), some)
        parts += memory.values.get(result.storage, [])
    where, values = (torch.cat(each) for each in zip(*parts, strict=True))
    order = where.argsort(stable=True)
    return where[order], values[order]


def _some(grid: Sequence[int], near: Sequence[int], far: bool, elements: int) -> list[int]:
    total, step = math.prod(grid), 1
    found = {n * total // elements + more for n in near for more in (0, 1)}
    for size in grid if far else ():
        found |= {place * step for place in (size - 1, *(1 << bit for bit in range(max(size - 1, 0).bit_length())))}
        step *= size
    return sorted(one for one in found if one < total)


@dataclass
class _OfOnes(CountingMemory):
    """Where all that is loaded is 1; `values` has elements and what is stored there, by storages."""

    values: dict[int, list[tuple[torch.Tensor, torch.Tensor]]] = field(default_factory=dict)

    def load(self, access: Access, other: Value | None, dtype: torch.dtype) -> torch.Tensor:
        """Ones."""
        return torch.ones_like(super().load(access, other, dtype))

    def store(self, access: Access, value: torch.Tensor) -> None:
        """Kept."""
        index, active = flat_index(access.pointer.offset, access.shape), flat_mask(access.mask, access.shape)
        here = slice(None) if active is None else active
        if access.pointer.storage is not None:
            kept = index[here], value.expand(access.shape).flatten()[here]
            self.values.setdefault(access.pointer.storage.id, []).append(kept)


def outside(program: Program, number: int, place: tuple[int, int, int]) -> tuple[Op, int, int] | None:
    """The first operation of the program at `place` in launch `number` (of all options) that leaves its storage, the
    element and how many there are; None where there is none. Raises what `gradekit.engine.run` does."""
    launch = program.every_launch[number]
    ttir, (x, y, z) = program.kernels[launch.kernel].unaligned, place
    linear = x + launch.grid[0] * (y + launch.grid[1] * z)
    sizes = program.storages | program.allocated
    for op, one in touched(parsed(ttir), ttir, launch, [linear], program.path):
        count = sizes.get(one.storage.id, 0) // one.itemsize if one.storage is not None else 0
        wrong = one.active & ((one.index < 0) | (one.index >= count))
        if bool(wrong.any()):
            return op, int(one.index[wrong][0]), count
    return None
