"""Single programs of a launch run on the engine, on storages that do not exist: where
they touch memory is written down.

So a refutation for sizes that no machine could hold is looked at without any of that memory. What is loaded is zero: an
address that depends on data says nothing.
"""

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch

from gradekit.engine.budget import Budget, Meter, OverBudget, Unsupported
from gradekit.engine.frame import Frame, LaunchContext
from gradekit.engine.kernel_facts import facts, parsed
from gradekit.engine.lanes import Access, flat_index, flat_mask
from gradekit.engine.launch import bind, programs_at_once, run_programs
from gradekit.engine.memory import Memory, Storage
from gradekit.engine.observer import DrawnWith, TouchedElements
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


def _run(
    context: LaunchContext, launch: Launch, storages: Memory, linear: Sequence[int],
    columns: Mapping[int, torch.Tensor] | None = None,
) -> None:  # fmt: skip
    for argument in launch.args:
        view = getattr(argument, "view", argument)
        if hasattr(view, "storage"):
            empty = torch.empty(0, dtype=torch.uint8)
            storages.storages[view.storage] = Storage(view.storage, empty, (view.storage + 1) * ADDRESS_GAP)
    values = bind(context.module.entry, launch.args, storages)
    if columns:
        values = [columns.get(value, value) if type(value) is int else value for value in values]
    run_programs(context, values, linear)


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


def drawn_with(program: Program, number: int, others: torch.Tensor) -> torch.Tensor:
    """For each of the `others` in place of an argument `number` of its launches, what tells the random numbers that the
    first programs of a call draw then: int64, equal where Triton's generator is asked for the same; all 0 where it
    is not, or no launch has that argument."""
    told, meter = torch.zeros_like(others), Meter(Budget(work=1 << 40))
    for launch in program.every_launch:
        ttir, memory = program.kernels[launch.kernel].unaligned, _OfOnes(Traffic(), set(), [])
        few = replace(facts(ttir), tile=max(facts(ttir).tile >> 6, 1), peak=facts(ttir).peak >> 6)  # scalars, mostly
        for some in told.new_tensor(range(len(told))).split(programs_at_once(few)):
            generator = DrawnWith()

            def note(frame: Frame, op: Op, some: torch.Tensor = some, generator: DrawnWith = generator) -> None:
                for place in generator.operands(op):
                    value = (given := frame.tensor(op, place)).reshape(given.shape[0], -1)
                    told[some] = told[some] * _FACTOR + value[:, :1].flatten().long()
                made = next((frame.values[name] for name in op.results if name in generator.inside), None)
                if isinstance(made, torch.Tensor) and made.numel() > len(some) == made.shape[0]:
                    raise OverBudget("work", 0)  # each has met the counters: what is drawn needs no look

            context = LaunchContext(parsed(ttir), few, launch.grid, memory, meter, 0, "", program.path, observe=note)
            with contextlib.suppress(OverBudget, Unsupported):
                _run(context, launch, Memory(), [0] * len(some), {number: others[some].int()})
    return told


_FACTOR = 6364136223846793005  # of a hash: odd, and all of its bits count


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
