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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from gradekit.engine.atomics import Update, keep, overwrite, update
from gradekit.engine.fast import Traffic
from gradekit.engine.memory import Storage, everywhere
from gradekit.engine.values import (
    Affine,
    Below,
    Conjunction,
    Integer,
    Pointer,
    Value,
    dense,
    extremes,
    materialize,
    settled,
)
from gradekit.findings import Cause
from gradekit.program import ADDRESS_GAP

Shape = Sequence[int]
NOBODY = -1
NOBODY_YET = torch.iinfo(torch.int64).max
WORDS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""Elements are moved and compared as integers of their size, so that NaN equals itself."""
POISON = -1
"""The word of which every byte is 0xFF."""
WAITING = 1 << 16
"""How many lanes may always wait in a storage's marks; in those of a large storage, four for each unit."""
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
class Lanes:
    """The active lanes of one access to one storage (None: to no storage), 1-D: the positions of their elements, and
    where they are in the tiles (None: they are the first).

    The tensors may be shared with other accesses: never write to them.
    """

    site: Site
    storage: Storage | None
    itemsize: int
    width: int
    """Lanes of the tile of one program."""
    index: Tensor
    where: Tensor | None = None

    def keep(self, which: Tensor) -> Lanes:
        """Those where `which` (bool) holds."""
        count = int(which.count_nonzero())
        if count == which.numel() or everywhere(which[:count]):
            return self._of_these(self.index[:count], None if self.where is None else self.where[:count])
        kept = which.nonzero().view(-1)
        return self._of_these(self.index.index_select(0, kept), self._places(kept))

    def _of_these(self, index: Tensor, where: Tensor | None) -> Lanes:
        return Lanes(self.site, self.storage, self.itemsize, self.width, index, where)

    def _places(self, positions: Tensor) -> Tensor:
        """Where those at `positions` among these are in the tiles."""
        return positions if self.where is None else self.where.index_select(0, positions)

    def taken(self, flat: Tensor) -> Tensor:
        """What `flat` has for every lane of the tiles, for these."""
        return flat[: self.index.numel()] if self.where is None else flat.index_select(0, self.where)

    def put(self, flat: Tensor, value: Tensor) -> None:
        """Writes to `flat`, which has an element for every lane of the tiles, at these."""
        if self.where is None:
            flat[: self.index.numel()] = value
        else:
            flat.index_copy_(0, self.where, value)

    @property
    def units(self) -> Tensor:
        """The units of the storage that they touch, which are never larger than an element."""
        assert self.storage is not None
        return self.storage.units(self.index, self.itemsize)

    def by_unit(self, value: Tensor) -> Tensor:
        """What holds for each lane, for each of its units."""
        assert self.storage is not None
        ratio = self.itemsize // self.storage.unit
        return value if ratio <= 1 else value.repeat_interleave(ratio)

    @property
    def touched(self) -> tuple[Tensor, Tensor]:
        """The units, and the program of each."""
        return self.units, self.by_unit(self.programs)

    def of_units(self, which: Tensor) -> Tensor:
        """Which lanes have one of the units where `which` holds."""
        return which if which.numel() == self.index.numel() else which.view(self.index.numel(), -1).any(1)

    @functools.cached_property
    def programs(self) -> Tensor:
        """The program of each lane."""
        return self.taken(self.site.programs.view(-1, 1).expand(-1, self.width).reshape(-1))

    def programs_at(self, positions: Tensor) -> list[int]:
        """The programs of a few lanes."""
        return self.site.programs[self._places(positions).div(self.width, rounding_mode="floor")].tolist()


@dataclass
class Where:
    """What decides which lanes of an access are active, and on which elements."""

    offset: Integer
    mask: Value | None
    shape: tuple[int, ...]

    def same(self, other: Where) -> bool:
        """Whether they are known to be the same."""
        return self.mask is other.mask and self.shape == other.shape and _same_offset(self.offset, other.offset)


def _same_offset(a: Integer, b: Integer) -> bool:
    if isinstance(a, Affine) and isinstance(b, Affine) and isinstance(a.base, int) and isinstance(b.base, int):
        return (a.base, a.steps) == (b.base, b.steps)
    return a is b


@dataclass
class Marks:
    """For each unit of a storage in this launch: the program that wrote it last, and the first and last that read it.

    Few launches read what they write: accesses wait here until somebody asks who was there.
    """

    storage: Storage
    unit: int
    maps: dict[str, Tensor] = field(default_factory=dict)
    reads: list[Lanes] = field(default_factory=list)
    writes: list[Lanes] = field(default_factory=list)
    waiting: int = 0

    def read(self, lanes: Lanes) -> None:
        self.reads.append(lanes)
        self.waiting += lanes.index.numel()
        if self.waiting > max(WAITING, 4 * self._count()):
            self.readers()

    def writer(self) -> Tensor | None:
        """NOBODY where nobody has written; None where nobody has written anywhere."""
        for lanes in self.writes:
            units, programs = lanes.touched
            self._map("writer", NOBODY).index_copy_(0, units, programs)
        self.writes.clear()
        return self.maps.get("writer")

    def readers(self) -> tuple[Tensor, Tensor] | None:
        """The first and the last; None where nobody has read anywhere."""
        for lanes in self.reads:
            units, programs = lanes.touched
            self._map("first", NOBODY_YET).scatter_reduce_(0, units, programs, "amin")
            self._map("last", NOBODY).scatter_reduce_(0, units, programs, "amax")
        self.reads.clear()
        self.waiting = 0
        return (self.maps["first"], self.maps["last"]) if "first" in self.maps else None

    def _count(self) -> int:
        return self.storage.data.numel() // self.storage.unit

    def _map(self, name: str, nobody: int) -> Tensor:
        if name not in self.maps:
            self.maps[name] = torch.full([self._count()], nobody, dtype=torch.int64)
        return self.maps[name]

    def refine(self) -> None:
        """Follows the storage to a smaller unit."""
        ratio, self.unit = self.unit // self.storage.unit, self.storage.unit
        if ratio > 1:
            self.maps = {name: map.repeat_interleave(ratio) for name, map in self.maps.items()}


@dataclass
class CheckedMemory:
    """Memory access for one launch of `total` programs; incidents are appended to `log`."""

    traffic: Traffic
    log: list[Incident]
    storages: dict[int, Storage]
    total: int
    marks: dict[Storage, Marks] = field(default_factory=dict)
    last: tuple[Where, Lanes] | None = None
    explains: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self.synchronized = torch.zeros(self.total, dtype=torch.bool)
        self.synchronizes = False

    # --- loads ---------------------------------------------------------------------------------------------------

    def load(
        self, pointer: Pointer, mask: Value | None, other: Value | None, dtype: torch.dtype, shape: Shape, site: Site
    ) -> Tensor:
        """The elements at `pointer` over `shape` (count, *tile); lanes outside `mask` give `other`, bad ones poison."""
        if site.volatile:
            self._synchronize(site)
        result = None
        for lanes in self._by_storage(pointer, mask, shape, dtype.itemsize, site):
            self.traffic.loaded += lanes.index.numel() * dtype.itemsize
            good = self._inside(Cause.OUT_OF_BOUNDS_LOAD, lanes)
            found = self._load(good)
            if found.numel() == math.prod(shape):
                return found.view(dtype).view(list(shape))
            if result is None:
                result = _others(other, dtype, shape)
            lanes.put(result, torch.full_like(lanes.index, POISON, dtype=result.dtype))
            good.put(result, found)
        return (_others(other, dtype, shape) if result is None else result).view(dtype).view(list(shape))

    def _load(self, lanes: Lanes) -> Tensor:
        """What is there, as words."""
        storage, word = lanes.storage, WORDS[lanes.itemsize]
        if storage is None:
            return torch.empty(0, dtype=word)  # no lane is in bounds of nothing
        self._examine_load(storage, lanes)
        return storage.typed(word).index_select(0, lanes.index)

    def _examine_load(self, storage: Storage, lanes: Lanes) -> None:
        # An input's unwritten elements are those that lie between or beside the elements of the tensor passed.
        self._seek_unwritten(Cause.OUT_OF_BOUNDS_LOAD if storage.is_input else Cause.UNINITIALIZED_READ, lanes)
        marks = self._marks(storage, lanes.itemsize)
        if lanes.site.volatile or self.total == 1:
            return  # who writes afterwards what is volatile answers it and does not race; one program meets nobody
        writer = marks.writer()
        if writer is not None:
            units, programs = lanes.touched
            last = writer.index_select(0, units)
            self._report_unordered(Cause.RACE, lanes, programs, (last != NOBODY) & (last != programs))
        marks.read(lanes)

    # --- stores --------------------------------------------------------------------------------------------------

    def store(self, pointer: Pointer, value: Tensor, mask: Value | None, shape: Shape, site: Site) -> None:
        """Writes `value` (lazily broadcast) at `pointer` over `shape` (count, *tile) where `mask` is true."""
        itemsize = value.dtype.itemsize
        words = value.expand(list(shape)).reshape(-1).view(WORDS[itemsize])
        for lanes in self._by_storage(pointer, mask, shape, itemsize, site):
            self.traffic.stored += lanes.index.numel() * itemsize
            good = self._inside(Cause.OUT_OF_BOUNDS_STORE, lanes)
            if lanes.storage is not None:
                self._store(lanes.storage, good, good.taken(words))

    def _store(self, storage: Storage, lanes: Lanes, words: Tensor) -> None:
        own(storage)
        target, marks = storage.typed(words.dtype), self._marks(storage, lanes.itemsize)
        writer = marks.writer()
        before = target.index_select(0, lanes.index) if storage.is_input or writer is not None else None
        target.index_copy_(0, lanes.index, words)
        if storage.written is not None:
            storage.written.index_fill_(0, lanes.units, True)
        if storage.is_input and before is not None:
            self._report(Cause.INPUT_MODIFIED, lanes, before != words)
        after = target.index_select(0, lanes.index)
        if not torch.equal(after, words):
            collisions = _collisions(lanes.index, words, after != words, target.numel())
            self._report(Cause.WRITE_CONFLICT, lanes, collisions)
        if writer is not None and before is not None:
            self._report_conflict(lanes, writer, before != words)
        self._report_overwritten(lanes, marks)
        if self.total > 1:  # one program meets nobody
            marks.writes.append(lanes)

    def _report_conflict(self, lanes: Lanes, writer: Tensor, changed: Tensor) -> None:
        units, programs = lanes.touched
        last = writer.index_select(0, units)
        conflict = (last != NOBODY) & (last != programs) & lanes.by_unit(changed)
        self._report_unordered(Cause.WRITE_CONFLICT, lanes, programs, conflict)

    def _report_overwritten(self, lanes: Lanes, marks: Marks) -> None:
        """Those that others have read: with the other order, they would have read something else."""
        readers = marks.readers()
        if readers is not None:
            units, programs = lanes.touched
            first, last = (map.index_select(0, units) for map in readers)
            self._report_unordered(Cause.RACE, lanes, programs, (first < programs) | (last > programs))

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
        for lanes in self._by_storage(pointer, mask, shape, dtype.itemsize, site):
            self.traffic.loaded += lanes.index.numel() * dtype.itemsize
            self.traffic.stored += lanes.index.numel() * dtype.itemsize
            good, storage = self._inside(Cause.OUT_OF_BOUNDS_STORE, lanes), lanes.storage
            if storage is None:
                continue
            self._examine_atomic(storage, good, change)
            own(storage)
            active = torch.ones(good.index.numel(), dtype=torch.bool)
            values = tuple(good.taken(flat) for flat in flats)
            old = update(storage.typed(dtype), good.index, active, change, values, active.shape)
            good.put(result, old)
            storage.mark_written(good.index, dtype.itemsize)
        self._synchronize(site)
        return result.view(list(shape))

    def _examine_atomic(self, storage: Storage, lanes: Lanes, change: Update) -> None:
        if storage.is_input:
            if change is not keep:
                self._report(Cause.INPUT_MODIFIED, lanes, lanes.index >= 0)
        elif change is not overwrite:
            self._seek_unwritten(Cause.UNINITIALIZED_READ, lanes)

    def _synchronize(self, site: Site) -> None:
        self.synchronized[site.programs] = True
        self.synchronizes = True

    # --- lanes ---------------------------------------------------------------------------------------------------

    def _by_storage(self, pointer: Pointer, mask: Value | None, shape: Shape, itemsize: int, site: Site) -> list[Lanes]:
        found = self._lanes(Where(pointer.offset, mask, tuple(shape)), site)
        lanes = Lanes(site, pointer.storage, itemsize, found.width, found.index, found.where)
        return [lanes] if pointer.storage is not None else list(self._by_address(lanes))

    def _lanes(self, where: Where, site: Site) -> Lanes:
        """The active lanes; those of the last access, where this one is at the same place of another tensor."""
        if self.last is None or not self.last[0].same(where):
            lanes = Lanes(site, None, 1, math.prod(where.shape[1:]), _flat_index(where.offset, where.shape))
            active = _flat_mask(where.mask, where.shape)
            self.last = where, lanes if active is None else lanes.keep(active)
        return self.last[1]

    def _by_address(self, lanes: Lanes) -> Iterator[Lanes]:
        owners = lanes.index.div(ADDRESS_GAP, rounding_mode="floor")
        for owner in owners.unique().tolist():
            mine = lanes.keep(owners == owner)
            mine.index = (mine.index - owner * ADDRESS_GAP).div(lanes.itemsize, rounding_mode="floor")
            mine.storage = self.storages.get(owner)
            yield mine

    def _inside(self, cause: Cause, lanes: Lanes) -> Lanes:
        """Those that are in bounds; the others are an incident."""
        bad = _outside(lanes.index, 0 if lanes.storage is None else lanes.storage.count(lanes.itemsize))
        if bad is None:
            return lanes
        self._report(cause, lanes, bad)
        return lanes.keep(~bad)

    def _marks(self, storage: Storage, itemsize: int) -> Marks:
        """This launch's marks of the storage, in units of at most `itemsize` bytes."""
        storage.written_map(itemsize)
        if storage not in self.marks:
            self.marks[storage] = Marks(storage, storage.unit)
        self.marks[storage].refine()
        return self.marks[storage]

    def _seek_unwritten(self, cause: Cause, lanes: Lanes) -> None:
        assert lanes.storage is not None
        units, written = lanes.units, lanes.storage.written
        seen = None if written is None else written.index_select(0, units)
        if seen is not None and not everywhere(seen):
            self._report(cause, lanes, lanes.of_units(~seen))

    def _report_unordered(self, cause: Cause, lanes: Lanes, programs: Tensor, which: Tensor) -> None:
        """An incident of the units where `which` holds, if their programs have not synchronized with others."""
        if self.synchronizes:
            which = which & ~self.synchronized[programs]
        self._report(cause, lanes, lanes.of_units(which))

    def _report(self, cause: Cause, lanes: Lanes, which: Tensor) -> None:
        """An incident that concerns the lanes where `which` (bool, one for each) holds; none if there are none."""
        bad = which.nonzero().view(-1)
        if bad.numel():
            shown = bad[:SHOWN]
            elements, programs = lanes.index[shown].tolist(), lanes.programs_at(shown)
            self.log.append(Incident(cause, lanes.site, lanes.storage, lanes.itemsize, elements, programs, bad.numel()))

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


def _flat_index(offset: Integer, shape: Shape) -> Tensor:
    now: int | Affine | Tensor = settled(offset)
    if isinstance(now, int):
        now = torch.full([1] * len(shape), now, dtype=torch.int64)
    return (materialize(now, shape) if isinstance(now, Affine) else now).expand(list(shape)).reshape(-1)


def _flat_mask(mask: Value | None, shape: Shape) -> Tensor | None:
    if mask is None or mask is True:
        return None
    if isinstance(mask, (int, Tensor, Below, Conjunction)):
        return dense(mask, torch.bool, shape).expand(list(shape)).reshape(-1)
    raise TypeError(f"not a mask: {mask!r}")


def _others(other: Value | None, dtype: torch.dtype, shape: Shape) -> Tensor:
    """What lanes outside of the mask get, as words for all lanes of the tiles."""
    base = dense(0 if other is None else other, dtype, shape)
    return base.expand(list(shape)).clone(memory_format=torch.contiguous_format).view(-1).view(WORDS[dtype.itemsize])


def _outside(index: Tensor, count: int) -> Tensor | None:
    """Which positions are not among 0..count-1; None if all are."""
    if not index.numel():
        return None
    low, high = extremes(index)
    if 0 <= low and high < count:
        return None
    return index >= count if low >= 0 else (index < 0) | (index >= count)


def _collisions(index: Tensor, words: Tensor, lost: Tensor, count: int) -> Tensor:
    """Lanes of one store that write another value to an element that an earlier lane of the store also writes.

    Such an element, which is one of `count`, has a lane whose value was `lost`: it is not there after the store.
    """
    disputed = torch.zeros(count, dtype=torch.bool).index_fill_(0, index.index_select(0, lost.nonzero().view(-1)), True)
    lanes = disputed.index_select(0, index).nonzero().view(-1)
    elements = index.index_select(0, lanes)
    if count < 1 << 31:
        elements = elements.to(torch.int32)  # sorted in half the time
    lanes = lanes.index_select(0, torch.argsort(elements, stable=True))
    index, words = index.index_select(0, lanes), words.index_select(0, lanes)
    later = lanes[1:][(index[1:] == index[:-1]) & (words[1:] != words[:-1])]
    return torch.zeros(lost.numel(), dtype=torch.bool).index_fill_(0, later, True)
