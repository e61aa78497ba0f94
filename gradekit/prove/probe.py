"""Single programs of a launch run on the engine, on storages that do not exist: where
they touch memory is written down.

So a refutation for sizes that no machine could hold is looked at without any of that memory. What is loaded is zero: an
address that depends on data says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from gradekit.engine import Budget, Module
from gradekit.engine.budget import Meter
from gradekit.engine.frame import LaunchContext
from gradekit.engine.kernel_facts import facts, parsed
from gradekit.engine.lanes import Access, LaunchMemory
from gradekit.engine.launch import bind, run_some_programs
from gradekit.engine.memory import Memory, Storage
from gradekit.engine.values import dense
from gradekit.observations import Site, Traffic
from gradekit.program import ADDRESS_GAP, Launch, Program
from gradekit.prove.symbolic_host import allocated, every_launch

WORK = 200_000_000
"""What one program may cost: a fifth of a second."""


@dataclass(frozen=True)
class Touched:
    """What one operation touched: `offsets` int64 and `active` bool, both [programs, *tile]; `itemsize` bytes each."""

    kind: str
    site: Site
    storage: int | None
    itemsize: int
    offsets: Tensor
    active: Tensor
    programs: Tensor


class _ProbeMemory(LaunchMemory):
    """Memory of a launch that holds nothing; `touched` is what was asked of it."""

    explains: ClassVar[bool] = True

    def __init__(self) -> None:
        self.traffic = Traffic()
        self.touched: list[Touched] = []

    def load(self, access: Access, other: Any, dtype: torch.dtype) -> Tensor:
        self._note("load", access)
        return torch.zeros([1] * len(access.shape), dtype=dtype).expand(access.shape).clone()

    def store(self, access: Access, value: Tensor) -> None:
        self._note("store", access)

    def atomic(self, access: Access, change: Any, operands: Any) -> Tensor:
        self._note("atomic", access)
        return torch.zeros([1] * len(access.shape), dtype=operands[0].dtype).expand(access.shape).clone()

    def _note(self, kind: str, access: Access) -> None:
        pointer, size = access.pointer, access.shape
        offsets = dense(pointer.offset, torch.int64, size).expand(size)
        active = dense(True if access.mask is None else access.mask, torch.bool, size).expand(size)
        storage, site = pointer.storage.id if isinstance(pointer.storage, Storage) else None, access.site
        self.touched.append(Touched(kind, site.site, storage, pointer.itemsize, offsets, active, site.programs))


def touched(module: Module, ttir: str, launch: Launch, linear: Sequence[int], path: str) -> list[Touched]:
    """What the programs with these linear ids touch."""
    memory, storages = _ProbeMemory(), Memory()
    for argument in launch.args:
        view = getattr(argument, "view", argument)
        if hasattr(view, "storage"):
            empty = torch.empty(0, dtype=torch.uint8)
            storages.storages[view.storage] = Storage(view.storage, empty, "", (view.storage + 1) * ADDRESS_GAP)
    context = LaunchContext(module, facts(ttir), launch.grid, memory, Meter(Budget(work=WORK)), 0, "", path)
    run_some_programs(context, bind(module.entry, launch.args, storages), torch.tensor(linear))
    return memory.touched


def outside(program: Program, number: int, place: tuple[int, int, int]) -> tuple[Touched, int, int] | None:
    """The first operation of the program at `place` in launch `number` (of all options) that leaves its storage, the
    element that it touches, and how many there are; None where there is none.

    Raises:
        Unsupported, OverBudget: as `gradekit.engine.run` does.
    """
    launch = every_launch(program)[number]
    ttir, (x, y, z) = program.kernels[launch.kernel].unaligned, place
    linear = x + launch.grid[0] * (y + launch.grid[1] * z)
    sizes = program.storages | allocated(program)
    for one in touched(parsed(ttir), ttir, launch, [linear], program.path):
        count = sizes.get(one.storage, 0) // one.itemsize if one.storage is not None else 0
        wrong = one.active & ((one.offsets < 0) | (one.offsets >= count))
        if bool(wrong.any()):
            return one, int(one.offsets[wrong][0]), count
    return None
