"""Looking on while programs run: what an observer is told of a launch, and which elements an operation touches.

An observer changes nothing. Where a run has none, this costs one comparison for each operation.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from gradekit.engine.frame import Frame, LaunchContext, Observe
from gradekit.engine.history import NOBODY
from gradekit.engine.lanes import flat_index, flat_mask
from gradekit.engine.memory import Memory, Storage
from gradekit.engine.ttir import Op
from gradekit.program import ADDRESS_GAP


class Observer(Protocol):
    """Who looks on while a program runs."""

    def launch(self, context: LaunchContext, memory: Memory) -> Observe | None:
        """A launch begins: what to call after its operations, if anything. A run made again begins with launch 0."""


@dataclass(frozen=True)
class TouchedElements:
    """The elements of `storage` (None: of no storage) that one operation touches: `index` int64 and `active` bool, both
    [programs, lanes], in units of `itemsize` bytes."""

    storage: Storage | None
    index: Tensor
    active: Tensor
    itemsize: int


def touched(frame: Frame, op: Op, memory: Memory) -> TouchedElements | None:
    """What `op` has just touched for the programs of `frame`; None where it touches no memory."""
    accessed = frame.context.accessed
    if accessed is None or accessed[0] is not op:
        return None
    pointer, shape = accessed[1].pointer, accessed[1].shape
    index = flat_index(pointer.offset, shape).view(frame.count, -1)
    active = flat_mask(accessed[1].mask, shape)
    here = torch.ones_like(index, dtype=torch.bool) if active is None else active.view(frame.count, -1)
    if pointer.storage is None:
        return _of_addresses(index, here, pointer.itemsize, memory)
    return TouchedElements(pointer.storage, index, here, pointer.itemsize)


def _of_addresses(addresses: Tensor, active: Tensor, itemsize: int, memory: Memory) -> TouchedElements:
    """Lanes that have addresses in place of elements: those of the storage in which the first of them lies."""
    gaps = addresses // ADDRESS_GAP
    chosen = gaps[active]
    storage = memory.at_gaps().get(int(chosen[0])) if chosen.numel() else None
    if storage is None:
        return TouchedElements(None, addresses, active, itemsize)
    inside = active & (gaps == storage.address // ADDRESS_GAP)
    elements = storage.places_of((addresses - storage.address) // itemsize, itemsize)
    return TouchedElements(storage, elements, inside, itemsize)


# --- who wrote what last ----------------------------------------------------------------------------------------------


_WRITES = ("tt.store", "tt.descriptor_store")
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


def is_of_generator(op: Op) -> bool:
    """Whether an operation stands in Triton's own generator of random numbers."""
    return bool(op.location) and op.location[0][0].endswith("random.py")


@dataclass
class DrawnWith:
    """What a kernel draws random numbers with: follows the operations of Triton's own generator."""

    inside: set[str] = field(default_factory=set)

    def operands(self, op: Op) -> list[int]:
        """Which operands of `op`, which has been evaluated, the generator is given and has not made itself."""
        if not is_of_generator(op):
            return []
        self.inside.update(op.results)
        return [place for place, name in enumerate(op.operands) if name not in self.inside]
