"""Loads and stores lane by lane, with a record of who wrote and who read: slower than `fast`, and it explains.

Every lane's address, program and value are compared with what other programs of the launch did. What is wrong becomes
an `Incident`, and the access goes on with what is harmless: a bad load gives poison, a bad store is dropped.

Two programs are ordered only by atomics. A program that has executed an atomic operation or a volatile load in this
launch may have taken a lock or awaited a signal, so its later accesses are not called races: silence where the evidence
is not clear.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from gradekit.engine.atomics import Update, keep, overwrite, update
from gradekit.engine.fast import Traffic
from gradekit.engine.memory import Storage
from gradekit.engine.values import Affine, Below, Conjunction, Later, Pointer, Value, dense, materialize, settled
from gradekit.findings import Cause
from gradekit.program import ADDRESS_GAP

Shape = Sequence[int]
NOBODY = torch.iinfo(torch.int64).max
SHOWN = 8
"""How many lanes of one incident are kept."""


@dataclass
class Site:
    """Where an access happens: the student's `line`, the `launch` number and `kernel`, and the programs of axis 0.

    `volatile` says that the kernel asks for what other programs write meanwhile.
    """

    line: int | None
    launch: int
    kernel: str
    programs: Tensor
    volatile: bool = False


@dataclass
class Incident:
    """One thing seen at one line: element positions (in units of `itemsize`) with their programs, and how many."""

    cause: Cause
    site: Site
    storage: Storage | None
    itemsize: int
    elements: list[int]
    programs: list[int]
    count: int
    message: str = ""


@dataclass
class Marks:
    """For each unit of a storage in this launch: who wrote it last (program + 1, 0 nobody), and who read it."""

    unit: int
    writer: Tensor
    first_reader: Tensor
    last_reader: Tensor

    @classmethod
    def blank(cls, units: int, unit: int) -> Marks:
        zeros = torch.zeros(units, dtype=torch.int64)
        return cls(unit, zeros, torch.full_like(zeros, NOBODY), torch.full_like(zeros, -1))

    def refine(self, unit: int) -> None:
        ratio = self.unit // unit
        if ratio > 1:
            self.unit = unit
            for name in ("writer", "first_reader", "last_reader"):
                setattr(self, name, getattr(self, name).repeat_interleave(ratio))


@dataclass
class Lanes:
    """The active lanes of one access to one storage, 1-D: element positions, programs, and where they are in the tile.

    The tensors may be shared with other accesses: never write to them.
    """

    index: Tensor
    programs: Tensor
    where: Tensor

    def keep(self, mask: Tensor) -> Lanes:
        return Lanes(self.index[mask], self.programs[mask], self.where[mask])


@dataclass
class CheckedMemory:
    """Memory access for one launch of `total` programs; incidents are appended to `log`."""

    traffic: Traffic
    log: list[Incident]
    storages: dict[int, Storage]
    total: int
    marks: dict[Storage, Marks] = field(default_factory=dict)
    explains: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self.synchronized = torch.zeros(self.total, dtype=torch.bool)

    # --- loads ---------------------------------------------------------------------------------------------------

    def load(
        self, pointer: Pointer, mask: Value | None, other: Value | None, dtype: torch.dtype, shape: Shape, site: Site
    ) -> Tensor:
        """The elements at `pointer` over `shape` (count, *tile); lanes outside `mask` give `other`, bad ones poison."""
        poison = torch.full([dtype.itemsize], 0xFF, dtype=torch.uint8).view(dtype)
        base = dense(0 if other is None else other, dtype, shape)
        result = base.expand(list(shape)).clone().reshape(-1)
        if site.volatile:
            self.synchronized[site.programs] = True
        for storage, lanes in self._by_storage(pointer, mask, shape, dtype.itemsize):
            self.traffic.loaded += lanes.index.numel() * dtype.itemsize
            result[lanes.where] = poison
            good = self._in_bounds(Cause.OUT_OF_BOUNDS_LOAD, storage, lanes, dtype.itemsize, site)
            if storage is not None:
                self._examine_load(storage, good, dtype.itemsize, site)
                result[good.where] = storage.typed(dtype)[good.index]
        return result.view(list(shape))

    def _examine_load(self, storage: Storage, lanes: Lanes, itemsize: int, site: Site) -> None:
        if storage.written is not None:
            # An input's unwritten elements are those that lie between or beside the elements of the tensor passed.
            cause = Cause.OUT_OF_BOUNDS_LOAD if storage.is_input else Cause.UNINITIALIZED_READ
            self._report(cause, storage, lanes, _unwritten(storage, lanes, itemsize), itemsize, site)
        if site.volatile:
            return  # whoever writes here afterwards answers it, and does not race with it
        marks, units, programs = self._units(storage, lanes, itemsize)
        writer = marks.writer[units]
        raced = (writer != 0) & (writer != programs + 1) & ~self.synchronized[programs]
        self._report(Cause.RACE, storage, lanes, _lanes_of(raced, lanes), itemsize, site)
        marks.first_reader.scatter_reduce_(0, units, programs, "amin")
        marks.last_reader.scatter_reduce_(0, units, programs, "amax")

    # --- stores --------------------------------------------------------------------------------------------------

    def store(self, pointer: Pointer, value: Tensor, mask: Value | None, shape: Shape, site: Site) -> None:
        """Writes `value` (lazily broadcast) at `pointer` over `shape` (count, *tile) where `mask` is true."""
        itemsize, flat = value.dtype.itemsize, value.expand(list(shape)).reshape(-1)
        for storage, lanes in self._by_storage(pointer, mask, shape, itemsize):
            self.traffic.stored += lanes.index.numel() * itemsize
            good = self._in_bounds(Cause.OUT_OF_BOUNDS_STORE, storage, lanes, itemsize, site)
            if storage is not None:
                self._examine_store(storage, good, flat[good.where], site)
                self._write(storage, good, flat[good.where])

    def _examine_store(self, storage: Storage, lanes: Lanes, value: Tensor, site: Site) -> None:
        itemsize = value.dtype.itemsize
        changed = _bits(storage.typed(value.dtype)[lanes.index]) != _bits(value)
        if storage.is_input:
            self._report(Cause.INPUT_MODIFIED, storage, lanes, changed, itemsize, site)
        self._report(Cause.WRITE_CONFLICT, storage, lanes, _collisions(lanes.index, value), itemsize, site)
        marks, units, programs = self._units(storage, lanes, itemsize)
        changed = _repeated(changed, len(units) // max(len(lanes.index), 1))
        unordered = ~self.synchronized[programs]
        writer = marks.writer[units]
        conflict = (writer != 0) & (writer != programs + 1) & unordered & changed
        self._report(Cause.WRITE_CONFLICT, storage, lanes, _lanes_of(conflict, lanes), itemsize, site)
        read = (marks.first_reader[units] < programs) | (marks.last_reader[units] > programs)
        self._report(Cause.RACE, storage, lanes, _lanes_of(read & unordered, lanes), itemsize, site)
        marks.writer[units] = programs + 1

    def _write(self, storage: Storage, lanes: Lanes, value: Tensor) -> None:
        own(storage)
        storage.typed(value.dtype)[lanes.index] = value
        storage.mark_written(lanes.index, value.dtype.itemsize)

    # --- atomics -------------------------------------------------------------------------------------------------

    def atomic(
        self,
        pointer: Pointer,
        change: Update,
        operands: tuple[Tensor, ...],
        mask: Value | None,
        shape: Shape,
        site: Site,
    ) -> Tensor:
        """Applies `change` to the elements at `pointer` in program order; the old values, over `shape`."""
        dtype = operands[0].dtype
        flats = [operand.expand(list(shape)).reshape(-1) for operand in operands]
        result = torch.zeros(flats[0].numel(), dtype=dtype)
        for storage, lanes in self._by_storage(pointer, mask, shape, dtype.itemsize):
            self.traffic.loaded += lanes.index.numel() * dtype.itemsize
            self.traffic.stored += lanes.index.numel() * dtype.itemsize
            good = self._in_bounds(Cause.OUT_OF_BOUNDS_STORE, storage, lanes, dtype.itemsize, site)
            if storage is None:
                continue
            self._examine_atomic(storage, good, change, dtype.itemsize, site)
            own(storage)
            active = torch.ones(good.index.numel(), dtype=torch.bool)
            values = tuple(flat[good.where] for flat in flats)
            result[good.where] = update(storage.typed(dtype), good.index, active, change, values, active.shape)
            storage.mark_written(good.index, dtype.itemsize)
        self.synchronized[site.programs] = True
        return result.view(list(shape))

    def _examine_atomic(self, storage: Storage, lanes: Lanes, change: Update, itemsize: int, site: Site) -> None:
        if storage.is_input:
            if change is not keep:
                self._report(Cause.INPUT_MODIFIED, storage, lanes, lanes.index >= 0, itemsize, site)
        elif storage.written is not None and change is not overwrite:
            unwritten = _unwritten(storage, lanes, itemsize)
            self._report(Cause.UNINITIALIZED_READ, storage, lanes, unwritten, itemsize, site)

    # --- lanes ---------------------------------------------------------------------------------------------------

    def _by_storage(
        self, pointer: Pointer, mask: Value | None, shape: Shape, itemsize: int
    ) -> list[tuple[Storage | None, Lanes]]:
        lanes = _active_lanes(pointer.offset, mask, shape)
        if pointer.storage is not None:
            return [(pointer.storage, lanes)]
        owners = lanes.index.div(ADDRESS_GAP, rounding_mode="floor")
        found = []
        for owner in owners.unique().tolist():
            mine = lanes.keep(owners == owner)
            mine.index = (mine.index - owner * ADDRESS_GAP).div(itemsize, rounding_mode="floor")
            found.append((self.storages.get(owner), mine))
        return found

    def _in_bounds(self, cause: Cause, storage: Storage | None, lanes: Lanes, itemsize: int, site: Site) -> Lanes:
        lanes.programs = site.programs[lanes.programs]
        count = 0 if storage is None else storage.count(itemsize)
        bad = (lanes.index < 0) | (lanes.index >= count)
        if not bool(bad.any()):
            return lanes
        self._report(cause, storage, lanes, bad, itemsize, site)
        return lanes.keep(~bad)

    def _units(self, storage: Storage, lanes: Lanes, itemsize: int) -> tuple[Marks, Tensor, Tensor]:
        """This launch's marks of the storage, the units that the lanes touch, and the program of each unit."""
        units = storage.units(lanes.index, itemsize)
        marks = self.marks.get(storage)
        if marks is None:
            marks = self.marks[storage] = Marks.blank(storage.data.numel() // storage.unit, storage.unit)
        marks.refine(storage.unit)
        return marks, units, _repeated(lanes.programs, len(units) // max(len(lanes.index), 1))

    def _report(
        self, cause: Cause, storage: Storage | None, lanes: Lanes, which: Tensor, itemsize: int, site: Site
    ) -> None:
        """An incident that concerns the lanes where `which` (bool, one for each) holds; none if there are none."""
        if bool(which.any()):
            bad = lanes.keep(which)
            elements, programs = bad.index[:SHOWN].tolist(), bad.programs[:SHOWN].tolist()
            self.log.append(Incident(cause, site, storage, itemsize, elements, programs, bad.index.numel()))

    def finish(self) -> None:
        """Ends the launch: the next one is ordered after it."""
        for storage in self.marks:
            storage.settle()


def own(storage: Storage) -> None:
    """Gives an input bytes of its own before the first write: the caller's tensor stays as it is."""
    if storage.is_input and not storage.owned:
        storage.data = storage.data.clone()
        storage._views.clear()
        storage.owned = True


def _active_lanes(offset: int | Affine | Later | Tensor, mask: Value | None, shape: Shape) -> Lanes:
    now: int | Affine | Tensor = settled(offset)
    if isinstance(now, int):
        now = torch.full([1] * len(shape), now, dtype=torch.int64)
    index = (materialize(now, shape) if isinstance(now, Affine) else now).expand(list(shape)).reshape(-1)
    active = _flat_mask(mask, shape)
    programs = _programs(shape[0], math.prod(shape[1:]))
    if active is None or bool(active.all()):
        return Lanes(index, programs, _positions(index.numel()))
    where = active.nonzero().view(-1)
    return Lanes(index[where], programs[where], where)


@functools.lru_cache(maxsize=16)
def _positions(lanes: int) -> Tensor:
    return torch.arange(lanes)


@functools.lru_cache(maxsize=16)
def _programs(count: int, lanes: int) -> Tensor:
    """The position of its program for each lane of `count` tiles."""
    return torch.arange(count).repeat_interleave(lanes)


def _repeated(value: Tensor, ratio: int) -> Tensor:
    """What holds for a lane, for each of its `ratio` units."""
    return value if ratio == 1 else value.repeat_interleave(ratio)


def _lanes_of(units: Tensor, lanes: Lanes) -> Tensor:
    """Which lanes have a marked unit."""
    return units if len(units) == len(lanes.index) else units.view(len(lanes.index), -1).any(1)


def _unwritten(storage: Storage, lanes: Lanes, itemsize: int) -> Tensor:
    """Which lanes have a unit that was never written."""
    units = storage.units(lanes.index, itemsize)
    assert storage.written is not None
    return _lanes_of(~storage.written[units], lanes)


def _flat_mask(mask: Value | None, shape: Shape) -> Tensor | None:
    if mask is None or mask is True:
        return None
    if isinstance(mask, (int, Tensor, Below, Conjunction)):
        return dense(mask, torch.bool, shape).expand(list(shape)).reshape(-1)
    raise TypeError(f"not a mask: {mask!r}")


def _bits(value: Tensor) -> Tensor:
    """The same elements as integers, so that NaN equals itself."""
    return value.view({1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[value.dtype.itemsize])


def _collisions(index: Tensor, value: Tensor) -> Tensor:
    """Lanes of one store that write another value to an element that an earlier lane of the store also writes."""
    if len(index) < 2 or bool((index[1:] > index[:-1]).all()):
        return torch.zeros(len(index), dtype=torch.bool)
    order = torch.argsort(index, stable=True)
    ordered, bits = index[order], _bits(value)[order]
    collides = torch.zeros(len(index), dtype=torch.bool)
    collides[order[1:]] = (ordered[1:] == ordered[:-1]) & (bits[1:] != bits[:-1])
    return collides
