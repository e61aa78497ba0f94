"""The checked memory of a launch: loads and stores lane by lane, with a record of who wrote and who read.

Slower than `fast`, which says why there are two. Every lane's address, program and value are compared with what other
programs of the launch did. What is wrong becomes an `Incident`, and the access goes on with what is harmless: a bad
load gives poison, a bad store is dropped.

Two programs are ordered only by atomics on one address (history.py); whatever else they touch in common, with one of
them writing, is a race. Two lanes of one program are ordered only by a barrier between their accesses.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch
from torch import Tensor

from gradekit.engine.atomics import Update, compare_and_swap, keep, overwrite, update
from gradekit.engine.history import NEVER, NOBODY, AccessHistory, Ordering, Writers
from gradekit.engine.lanes import Access, Lanes, LaunchMemory, flat_index, flat_mask
from gradekit.engine.memory import Storage, everywhere, own
from gradekit.engine.values import Value, dense, extremes
from gradekit.findings import Cause
from gradekit.observations import SHOWN, Incident, Traffic
from gradekit.program import ADDRESS_GAP

Shape = Sequence[int]
WORDS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""Elements are moved and compared as integers of their size, so that NaN equals itself."""
EARLY = "an atomic of that program does not wait for its other lanes"
NARROW = "by an atomic of scope 'cta', which orders the lanes of one program only"


@dataclass
class CheckedMemory(LaunchMemory):
    """Memory access for one launch of `total` programs; incidents are appended to `log`.

    Where a kernel awaits values by volatile loads, `stores_publish`: what stands before a plain store is known
    to whoever reads what it stored. Where not `atomics_wait`, an atomic publishes what stands before the last barrier.
    `claim` is told how many bytes the histories take. `loaded` and `stored` are the ids of storages that have been.
    """

    traffic: Traffic
    log: list[Incident]
    storages: dict[int, Storage]
    total: int
    stores_publish: bool = False
    atomics_wait: bool = True
    claim: Callable[[int], None] | None = None
    histories: dict[Storage, AccessHistory] = field(default_factory=dict)
    last_lanes: tuple[Access, Lanes] | None = None
    explains: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self.ordering = Ordering(self.total)
        self.if_waiting = None if self.atomics_wait else Ordering(self.total)  # as if all atomics waited
        self.fenced = torch.full([self.total], NEVER)  # when each program has last passed a barrier
        self.atomics: dict[Storage, AccessHistory] = {}
        self.barriers: Tensor | None = None
        self.loaded: set[int] = set()
        self.stored: set[int] = set()

    @property
    def in_place(self) -> bool:
        """Whether a storage was loaded from and stored to, or changed by atomics."""
        return bool(self.loaded & self.stored) or bool(self.atomics)

    # --- loads ---------------------------------------------------------------------------------------------------

    def load(self, access: Access, other: Value | None, dtype: torch.dtype) -> Tensor:
        """The elements; lanes outside of the mask give `other`, bad ones poison."""
        result, shape = None, access.shape
        for lanes in self._by_storage(access, dtype.itemsize):
            self.traffic.loaded += lanes.index.numel() * dtype.itemsize
            good = self._inside(Cause.OUT_OF_BOUNDS_LOAD, lanes)
            found = self._load(good)
            if found.numel() == math.prod(shape):
                return found.view(dtype).view(list(shape))
            if result is None:
                result = _others(other, dtype, shape)
            lanes.put(result, torch.full_like(lanes.index, -1, dtype=result.dtype))
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
        history = self._history(storage, lanes.itemsize)
        if lanes.access.volatile:  # who writes afterwards what is volatile answers it, and does not race
            self._record(storage, lanes, acquires=True, releases=torch.zeros(lanes.index.numel(), dtype=torch.bool))
            return
        writers = history.writers()
        if writers is not None:
            self._report_race(Cause.RACE, lanes, writers)
            self._report_same_program(lanes, writers)
        self._report_atomics(storage, lanes)
        history.read(lanes, self.ordering.time)
        self.loaded.add(storage.id)

    # --- stores --------------------------------------------------------------------------------------------------

    def store(self, access: Access, value: Tensor) -> None:
        """Writes `value`, lazily broadcast."""
        itemsize = value.dtype.itemsize
        words = value.expand(access.shape).reshape(-1).view(WORDS[itemsize])
        for lanes in self._by_storage(access, itemsize):
            self.traffic.stored += lanes.index.numel() * itemsize
            good = self._inside(Cause.OUT_OF_BOUNDS_STORE, lanes)
            if lanes.storage is not None:
                self._store(lanes.storage, good, good.taken(words))

    def _store(self, storage: Storage, lanes: Lanes, words: Tensor) -> None:
        own(storage)
        target, history = storage.typed(words.dtype), self._history(storage, lanes.itemsize)
        writers = history.writers()
        before = target.index_select(0, lanes.index) if storage.is_input or writers is not None else None
        target.index_copy_(0, lanes.index, words)
        if storage.written is not None:
            storage.written.index_fill_(0, lanes.units, True)
        if storage.is_input and before is not None:
            self._report(Cause.INPUT_MODIFIED, lanes, before != words)
        after = target.index_select(0, lanes.index)
        if not torch.equal(after, words):
            collisions = _collisions(lanes.index, words, after != words, target.numel())
            self._report(Cause.WRITE_CONFLICT, lanes, collisions)
        if writers is not None and before is not None:
            changed = lanes.by_unit(before != words)
            self._report_race(Cause.WRITE_CONFLICT, lanes, writers, changed)
            self._report_same_program(lanes, writers, changed)
        self._report_overwritten(lanes, history)
        self._report_atomics(storage, lanes)
        passed = None if self.barriers is None else self.barriers.clone()
        history.write(lanes, self.ordering.time, passed)
        self.stored.add(storage.id)
        if self.stores_publish:
            self._record(storage, lanes, acquires=False, releases=None)

    # --- who else was there --------------------------------------------------------------------------------------

    def _report_race(self, cause: Cause, lanes: Lanes, writers: Writers, also: Tensor | None = None) -> None:
        """Units that another program wrote before, unordered before this access; `also` must hold for them."""
        one = writers.only(lanes)
        if self.total == 1 or (one is not None and self._comes_after(one, lanes, writers, also)):
            return
        last = lanes.of(writers.program)
        which = (last != NOBODY) & (last != lanes.own)
        if also is not None:
            which &= also
        self._report_unordered(cause, lanes, which, lambda: (last, lanes.of(writers.time)))

    def _comes_after(self, one: int, lanes: Lanes, writers: Writers, also: Tensor | None) -> bool:
        """Whether what a program alone does now comes after all that `one` wrote there: one look for all units."""
        assert lanes.program is not None
        if one in (NOBODY, lanes.program) or (also is not None and not bool(also.any())):
            return True
        return self.ordering.comes_before(one, int(lanes.of(writers.time).max()), lanes.program)

    def _report_overwritten(self, lanes: Lanes, history: AccessHistory, why: str = "") -> None:
        """Those that others have touched: with the other order, they would have found something else."""
        readers = history.readers(lanes, self.ordering.comes_before) if self.total > 1 else ()
        for which, others in readers:
            self._report_unordered(Cause.RACE, lanes, which, others, why)

    def _report_atomics(self, storage: Storage, lanes: Lanes, why: str = "") -> None:
        """Plain accesses of what another program changes by atomics."""
        atomics = self.atomics.get(storage)
        if atomics is not None:
            atomics.refine()
            self._report_overwritten(lanes, atomics, why)

    def _report_same_program(self, lanes: Lanes, writers: Writers, also: Tensor | None = None) -> None:
        """Units that another lane of the same program wrote, and no barrier since; `also` must hold for them."""
        if writers.only(lanes) not in (None, lanes.program):
            return
        which = lanes.of(writers.program) == lanes.own
        if not bool(which.any()):
            return
        which &= lanes.of(writers.lane) != lanes.by_unit(lanes.positions)
        if self.barriers is not None:
            which &= lanes.of(writers.barriers) == self.barriers.index_select(0, lanes.by_unit(lanes.programs))
        self._report(Cause.MISSING_BARRIER, lanes, lanes.of_units(which if also is None else which & also))

    def barrier(self, programs: Tensor) -> None:
        """All lanes of each of these programs have come here before any goes on."""
        if self.barriers is None:
            self.barriers = torch.zeros(self.total, dtype=torch.int64)
        self.barriers[programs] += 1
        if self.if_waiting is not None:
            self.fenced[programs] = self.ordering.time
            nobody = programs[:0]
            self._order_both(nobody, nobody, False, None, None)

    # --- atomics -------------------------------------------------------------------------------------------------

    def atomic(self, access: Access, change: Update, operands: tuple[Tensor, ...]) -> Tensor:
        """Applies `change` to the elements in program order; the old values."""
        dtype = operands[0].dtype
        flats = [operand.expand(access.shape).reshape(-1) for operand in operands]
        result = torch.zeros(flats[0].numel(), dtype=dtype)
        for lanes in self._by_storage(access, dtype.itemsize):
            self.traffic.loaded += lanes.index.numel() * dtype.itemsize
            self.traffic.stored += lanes.index.numel() * dtype.itemsize
            good, storage = self._inside(Cause.OUT_OF_BOUNDS_STORE, lanes), lanes.storage
            if storage is None:
                continue
            self._examine_atomic(storage, good, change)
            own(storage)
            self.stored.add(storage.id)
            active = torch.ones(good.index.numel(), dtype=torch.bool)
            values = tuple(good.taken(flat) for flat in flats)
            old = update(storage.typed(dtype), good.index, active, change, values, active.shape)
            good.put(result, old)
            if storage.written is not None:
                storage.written[good.units] = True
            self._order(storage, good, change, old == good.taken(flats[0]))
        if access.site.answers and len(access.shape) == 1:  # it goes to all lanes, through shared memory and a barrier
            self.barrier(access.site.programs)
        return result.view(access.shape)

    def _examine_atomic(self, storage: Storage, lanes: Lanes, change: Update) -> None:
        if storage.is_input:
            if change is not keep:
                self._report(Cause.INPUT_MODIFIED, lanes, lanes.index >= 0)
        elif change is not overwrite:
            self._seek_unwritten(Cause.UNINITIALIZED_READ, lanes)
        history = self._history(storage, lanes.itemsize)
        writers = history.writers()
        if writers is not None:
            self._report_race(Cause.RACE, lanes, writers)
        if lanes.access.narrow:  # to other programs, it is a load and a store
            self._report_atomics(storage, lanes, NARROW)
            history.read(lanes, self.ordering.time)
        self._report_overwritten(lanes, history, NARROW if lanes.access.narrow else "")

    def _order(self, storage: Storage, lanes: Lanes, change: Update, succeeded: Tensor) -> None:
        """What an atomic says about the order of programs; a comparison that fails, like a load, publishes nothing."""
        access = lanes.access
        if change is not keep:
            self._of(self.atomics, storage).read(lanes, self.ordering.time)
        releases = succeeded if change is compare_and_swap else torch.full_like(succeeded, change is not keep)
        releases = releases & access.releases
        acquires = access.acquires and access.answers
        if acquires or bool(releases.any()):
            self._record(storage, lanes, acquires, releases)

    def _record(self, storage: Storage, lanes: Lanes, acquires: bool, releases: Tensor | None) -> None:
        done = self.fenced[lanes.programs] if lanes.access.early and not self.atomics_wait else None
        addresses = storage.address + lanes.index * lanes.itemsize
        self._order_both(lanes.programs, addresses, acquires, releases, done)

    def _order_both(
        self, programs: Tensor, addresses: Tensor, acquires: bool, releases: Tensor | None, done: Tensor | None
    ) -> None:
        self.ordering.record(programs, addresses, acquires, releases, done)
        if self.if_waiting is not None:
            self.if_waiting.record(programs, addresses, acquires, releases)

    # --- lanes ---------------------------------------------------------------------------------------------------

    def _by_storage(self, access: Access, itemsize: int) -> list[Lanes]:
        found, storage = self._lanes(access), access.pointer.storage
        lanes = replace(found, access=access.site, storage=storage, itemsize=itemsize)
        return [lanes] if storage is not None else list(self._by_address(lanes))

    def _lanes(self, access: Access) -> Lanes:
        """The active lanes; those of the last access, where this one is at the same place of another tensor."""
        if self.last_lanes is None or not self.last_lanes[0].is_at_the_place_of(access):
            index = flat_index(access.pointer.offset, access.shape)
            lanes = Lanes(access.site, None, 1, math.prod(access.shape[1:]), index, torch.arange(index.numel()))
            active = flat_mask(access.mask, access.shape)
            self.last_lanes = access, lanes if active is None else lanes.keep(active)
        return self.last_lanes[1]

    def _by_address(self, lanes: Lanes) -> Iterator[Lanes]:
        owners = lanes.index.div(ADDRESS_GAP, rounding_mode="floor")
        for owner in owners.unique().tolist():
            mine = lanes.keep(owners == owner)
            index = (mine.index - owner * ADDRESS_GAP).div(lanes.itemsize, rounding_mode="floor")
            storage = self.storages.get(owner)
            yield replace(mine, index=storage.places_of(index, lanes.itemsize) if storage else index, storage=storage)

    def _inside(self, cause: Cause, lanes: Lanes) -> Lanes:
        """Those that are in bounds; the others are an incident."""
        bad = _outside(lanes.index, 0 if lanes.storage is None else lanes.storage.count(lanes.itemsize))
        if bad is None:
            return lanes
        self._report(cause, lanes, bad)
        return lanes.keep(~bad)

    def _history(self, storage: Storage, itemsize: int) -> AccessHistory:
        """This launch's history of the storage, in units of at most `itemsize` bytes."""
        storage.written_map(itemsize)
        return self._of(self.histories, storage)

    def _of(self, histories: dict[Storage, AccessHistory], storage: Storage) -> AccessHistory:
        if storage not in histories:
            histories[storage] = AccessHistory(storage, storage.unit, claim=self.claim)
        histories[storage].refine()
        return histories[storage]

    def _seek_unwritten(self, cause: Cause, lanes: Lanes) -> None:
        assert lanes.storage is not None
        units, written = lanes.units, lanes.storage.written
        seen = None if written is None else written.index_select(0, units)
        if seen is not None and not everywhere(seen):
            self._report(cause, lanes, lanes.of_units(~seen))

    def _report_unordered(
        self, cause: Cause, lanes: Lanes, which: Tensor, others: Callable[[], tuple[Tensor, Tensor]], why: str = ""
    ) -> None:
        """An incident of the units where `which` holds, unless it is ordered after `others`: program and time."""
        if not bool(which.any()):
            return
        if self.ordering.time:
            at = which.nonzero().view(-1)
            programs, times = (map.index_select(0, at) for map in others())
            later = lanes.program
            mine = lanes.by_unit(lanes.programs).index_select(0, at) if later is None else later
            before = self.ordering.ordered(programs, times, mine)
            if everywhere(before):
                return
            which[at] = ~before
            if self.if_waiting is not None:
                waited = self.if_waiting.ordered(programs, times, mine) & ~before
                early = torch.zeros_like(which).index_fill_(0, at[waited], True)
                self._report(Cause.MISSING_BARRIER, lanes, lanes.of_units(early), EARLY)
                which &= ~early
        self._report(cause, lanes, lanes.of_units(which), why)

    def _report(self, cause: Cause, lanes: Lanes, which: Tensor, why: str = "") -> None:
        """An incident that concerns the lanes where `which` (bool, one for each) holds; none if there are none."""
        bad = which.nonzero().view(-1)
        if bad.numel():
            shown = bad[:SHOWN]
            elements, programs = lanes.index[shown].tolist(), lanes.programs_at(shown)
            id, capacity = (lanes.storage.id, lanes.storage.count(lanes.itemsize)) if lanes.storage else (None, 0)
            site, count, size = lanes.access.site, bad.numel(), lanes.itemsize
            self.log.append(Incident(cause, site, id, size, elements, programs, count, why, capacity=capacity))

    def finish(self) -> None:
        """Ends the launch: the next one is ordered after it."""
        for storage in self.histories:
            storage.settle()


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
