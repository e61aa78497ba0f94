"""Single programs of a launch run on the engine, on storages that do not exist: where
they touch memory is written down.

So a refutation for sizes that no machine could hold is looked at without any of that memory. What is loaded is zero: an
address that depends on data says nothing.
"""

from collections.abc import Mapping, Sequence

import torch

from gradekit.engine.budget import Budget, Meter
from gradekit.engine.frame import Frame, LaunchContext
from gradekit.engine.kernel_facts import facts, parsed
from gradekit.engine.launch import bind, run_programs
from gradekit.engine.memory import Memory, Storage
from gradekit.engine.observer import TouchedElements
from gradekit.engine.observer import touched as touched_by
from gradekit.engine.traffic import CountingMemory
from gradekit.engine.ttir import Module, Op
from gradekit.observations import Traffic
from gradekit.program import ADDRESS_GAP, Launch, Program
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
    run_without_memory(context, launch, storages, linear)
    return found


def run_without_memory(
    context: LaunchContext, launch: Launch, storages: Memory, linear: Sequence[int],
    columns: Mapping[int, torch.Tensor] | None = None,
) -> None:  # fmt: skip
    """Runs the programs `linear` of a launch, whose tensors enter `storages` without an element. An integer n among
    its arguments that `columns` has becomes columns[n]: a number for each program."""
    for argument in launch.args:
        view = getattr(argument, "view", argument)
        if hasattr(view, "storage"):
            empty = torch.empty(0, dtype=torch.uint8)
            storages.storages[view.storage] = Storage(view.storage, empty, (view.storage + 1) * ADDRESS_GAP)
    values = bind(context.module.entry, launch.args, storages)
    if columns:
        values = [columns.get(value, value) if type(value) is int else value for value in values]
    run_programs(context, values, linear)


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
