"""Which program of a launch wrote each element of a storage last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from gradekit.engine.frame import Frame, LaunchContext, Observe
from gradekit.engine.history import NOBODY
from gradekit.engine.memory import Memory
from gradekit.engine.observer import touched
from gradekit.engine.ttir import Op

_WRITES = ("tt.store", "tt.descriptor_store", "tt.experimental_descriptor_store")
_ATOMIC = "tt.atomic_"


@dataclass
class Owners:
    """An observer: by storage, the launch and the linear program id that wrote each element last, and in `shared` the
    program of the same launch that did so before it, where that is another one."""

    grids: list[tuple[int, int, int]] = field(default_factory=list)
    kernels: list[str] = field(default_factory=list)
    program: dict[int, Tensor] = field(default_factory=dict)
    launches: dict[int, Tensor] = field(default_factory=dict)
    shared: dict[int, Tensor] = field(default_factory=dict)
    _memory: Memory | None = None

    def launch(self, context: LaunchContext, memory: Memory) -> Observe:
        """A launch begins; with launch 0, everything does."""
        if context.launch == 0:
            for kept in (self.grids, self.kernels, self.program, self.launches, self.shared):
                kept.clear()
        self.grids.append(context.grid)
        self.kernels.append(context.kernel)
        self._memory = memory
        return self._note

    def _note(self, frame: Frame, op: Op) -> None:
        if not (op.name.startswith(_WRITES) or op.name.startswith(_ATOMIC)):
            return
        assert self._memory is not None
        found = touched(frame, op, self._memory)
        if found is None or found.storage is None:
            return
        count = found.storage.count(found.itemsize)
        inside = found.active & (found.index >= 0) & (found.index < count)
        programs = frame.programs().view(-1, 1).expand_as(found.index)[inside]
        where, id = found.index[inside], found.storage.id
        for kept in (self.program, self.launches, self.shared):
            if id not in kept or kept[id].numel() != count:
                kept[id] = torch.full([count], NOBODY, dtype=torch.int64)
        launch = len(self.grids) - 1
        self._note_shared(id, where, programs, launch)
        self.program[id][where] = programs
        self.launches[id][where] = launch

    def _note_shared(self, id: int, where: Tensor, programs: Tensor, launch: int) -> None:
        before = self.program[id][where]
        others = (before != NOBODY) & (before != programs) & (self.launches[id][where] == launch)
        self.shared[id][where[others]] = before[others]
        order = where.argsort(stable=True)  # programs that run together write at once: the same element stands twice
        twice = (where[order].diff() == 0) & (programs[order].diff() != 0)
        self.shared[id][where[order][1:][twice]] = programs[order][:-1][twice]

    def owner(self, storage: int, position: int) -> tuple[int, int] | None:
        """The launch and linear id of the program that wrote an element last; None where none did."""
        if storage not in self.program or not 0 <= position < self.program[storage].numel():
            return None
        program = int(self.program[storage][position])
        return None if program == NOBODY else (int(self.launches[storage][position]), program)


def coordinates(linear: int, grid: Sequence[int]) -> tuple[int, int, int]:
    """The program id (x, y, z) of a linear one."""
    return linear % grid[0], linear // grid[0] % grid[1], linear // (grid[0] * grid[1])


def linear_id(id: Sequence[int], grid: Sequence[int]) -> int | None:
    """The linear id of program (x, y, z); None where the grid has no such program."""
    x, y, z = (*id, 0, 0)[:3]
    inside = all(0 <= part < size for part, size in zip((x, y, z), grid, strict=True))
    return x + grid[0] * (y + grid[1] * z) if inside else None
