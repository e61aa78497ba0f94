"""Who has read and written what in one launch, and which programs are ordered by atomics.

For each unit of a storage, the programs that were there. An access is stamped with its time: how many atomics the
launch had executed.

Order is happens-before, as Triton's acquire and release define it. A program publishes what it has done by an atomic
with release semantics, and takes over what was published at the same address by an atomic with acquire semantics whose
answer it looks at: who does not look cannot know that it comes later. A volatile load takes over, too. Atomics of scope
"cta" order nothing between programs. Vector clocks are kept only for programs that have taken over something, and are
worked out when somebody asks.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor

from gradekit.engine.budget import Limit, Unsupported
from gradekit.engine.lanes import Lanes
from gradekit.engine.memory import Storage

NEVER = -1


_Event = tuple[Tensor, Tensor, bool, Tensor | None, Tensor | None]
"""One execution of an atomic, as `Ordering.record` takes it."""


@dataclass
class Ordering:
    """The atomics of one launch of `total` programs; `time` is how many of them have been executed."""

    total: int
    time: int = 0
    _events: list[_Event] = field(default_factory=list)
    _done: int = 0
    _clocks: dict[int, Tensor] = field(default_factory=dict)
    _published: dict[int, Tensor] = field(default_factory=dict)
    _lanes: int = 0
    _acquired: bool = False

    def record(
        self,
        programs: Tensor,
        addresses: Tensor,
        acquires: bool,
        releases: Tensor | None,
        done: Tensor | None = None,
    ) -> None:
        """An atomic of these lanes, by program and address (bytes): whether it acquires, and which lanes release (None:
        all) what they had done by `done` (None: by now). Without lanes, it parts what was done before from what comes
        after it."""
        self._acquired |= acquires
        self._events.append((programs, addresses, acquires, releases, done))
        self.time += 1

    def ordered(self, earlier: Tensor, times: Tensor, later: Tensor | int) -> Tensor:
        """For each lane, whether what `earlier` did before `times` precedes what `later` (or one for all) does now."""
        self._advance()
        result = torch.zeros(earlier.numel(), dtype=torch.bool)
        if isinstance(later, int):  # one program alone, as where programs take turns
            clock = self._clocks.get(later)
            return result if clock is None else clock.index_select(0, earlier) >= times
        for program in later.unique().tolist():
            clock = self._clocks.get(program)
            if clock is not None:
                mine = later == program
                result[mine] = clock.index_select(0, earlier[mine]) >= times[mine]
        return result

    def comes_before(self, earlier: int, time: int, later: int) -> bool:
        """Whether all that program `earlier` did before `time` comes before what `later` does now."""
        self._advance()
        clock = self._clocks.get(later)
        return clock is not None and int(clock[earlier]) >= time

    def _advance(self) -> None:
        """Works out the clocks up to now."""
        if not self._acquired:
            return
        for number, event in enumerate(self._events[self._done :], self._done):
            self._take(event, number)
        self._done = len(self._events)

    def _take(self, event: _Event, number: int) -> None:
        programs, addresses, acquires, publish, by = event
        releases = [True] * programs.numel() if publish is None else publish.tolist()
        done = [number] * len(releases) if by is None else by.tolist()
        lanes = dict.fromkeys(zip(programs.tolist(), addresses.tolist(), releases, done, strict=True))
        self._lanes += len(lanes)
        if self._lanes > Limit.EVENTS or (len(self._clocks) + len(self._published)) * self.total > Limit.CLOCKS:
            raise Unsupported(f"a launch that more than {Limit.EVENTS} atomics put in order")
        for program, address, releases_here, time in lanes:
            before = self._published.get(address)
            if acquires and before is not None:
                own = self._clocks.get(program)
                self._clocks[program] = before if own is None else torch.maximum(own, before)
            if releases_here:
                self._published[address] = self._clock(program, time, before)

    def _clock(self, program: int, time: int, before: Tensor | None) -> Tensor:
        """What is known after `program` has published what it did by `time`."""
        own = self._clocks.get(program)
        known = torch.full([self.total], NEVER, dtype=torch.int32) if own is None else own.clone()
        known[program] = time
        return known if before is None else torch.maximum(known, before)


# --- which programs are ordered by atomics ----------------------------------------------------------------------------


NOBODY = -1
_TIME_BITS = 31
_LATEST = (1 << _TIME_BITS) - 1
_NOT_YET = torch.iinfo(torch.int64).max
_MAP = 16  # bytes that it takes to know the writers of a unit, or its readers


@dataclass(slots=True)
class Writers:
    """For each unit: the program that wrote it last (or NOBODY), the time, by which lane, after how many barriers."""

    program: Tensor
    time: Tensor
    lane: Tensor
    barriers: Tensor

    def only(self, lanes: Lanes) -> int | None:
        """The one program that wrote all units of `lanes` last (NOBODY: none); None for lanes or writers of several."""
        ends = _ends(lanes, self.program)
        return ends[0] if ends is not None and ends[0] == ends[1] else None


def _ends(lanes: Lanes, map: Tensor) -> tuple[int, int] | None:
    """The smallest and the largest that `map` has for the units of a program alone."""
    if lanes.program is None or not lanes.index.numel():
        return None
    low, high = torch.aminmax(lanes.of(map))
    return int(low), int(high)


@dataclass
class AccessHistory:
    """For each unit of a storage in this launch: who wrote it last, and the first and the last program that read it.

    Few launches read what they write: accesses wait here until somebody asks who was there. `claim` is told how many
    bytes the maps are going to take.
    """

    storage: Storage
    unit: int
    writes: list[tuple[Lanes, int, Tensor | None]] = field(default_factory=list)
    reads: list[tuple[Lanes, int]] = field(default_factory=list)
    waiting: int = 0
    claim: Callable[[int], None] | None = None
    _writers: Writers | None = None
    _first: Tensor | None = None
    _last: Tensor | None = None

    def read(self, lanes: Lanes, time: int) -> None:
        """Records that `lanes` were read."""
        self.reads.append((lanes, time))
        self._wait(lanes)

    def write(self, lanes: Lanes, time: int, barriers: Tensor | None) -> None:
        """Records a store, with how many barriers each program has passed (None: none has any)."""
        self.writes.append((lanes, time, barriers))
        self._wait(lanes)

    def _wait(self, lanes: Lanes) -> None:
        self.waiting += lanes.index.numel()
        if self.waiting > min(max(Limit.WAITING, self._count()), Limit.WAITING_OF_LARGE):
            self._take_in()
            self.writers()

    def writers(self) -> Writers | None:
        """Who wrote each unit last; None where nobody has written anywhere."""
        for lanes, time, barriers in self.writes:
            self._add(lanes, time, barriers)
        self.writes.clear()
        return self._writers

    def _add(self, lanes: Lanes, time: int, barriers: Tensor | None) -> None:
        if self._writers is None:
            self._claim(self._count())
            self._writers = Writers(*(torch.full([self._count()], NOBODY, dtype=torch.int32) for _ in range(4)))
        known = self._writers
        units, programs = lanes.touched
        known.program.index_copy_(0, units, programs.to(torch.int32))
        known.time.index_fill_(0, units, time)
        known.lane.index_copy_(0, units, lanes.by_unit(lanes.positions).to(torch.int32))
        passed = torch.zeros_like(programs) if barriers is None else barriers.index_select(0, programs)
        known.barriers.index_copy_(0, units, passed.to(torch.int32))

    def readers(
        self, lanes: Lanes, comes_before: Callable[[int, int, int], bool]
    ) -> Iterator[tuple[Tensor, Callable[[], tuple[Tensor, Tensor]]]]:
        """Which units of `lanes` a program before or after their own has read, with what gives the first, or last, of
        these programs for each unit and the time at which it did last. Left out is what one look tells to be ordered:
        `comes_before` says of a program, a time and a later program whether what the one did by then does."""
        self._take_in()
        if self._first is None or self._last is None:
            return
        first, last, own = lanes.of(self._first), lanes.of(self._last), lanes.own
        if not self._is_ordered(lanes, self._first, comes_before):
            yield first < own << _TIME_BITS, lambda: (first >> _TIME_BITS, _LATEST - (first & _LATEST))
        if not self._is_ordered(lanes, self._last, comes_before):
            yield last >= own + 1 << _TIME_BITS, lambda: (last >> _TIME_BITS, last & _LATEST)

    def _is_ordered(self, lanes: Lanes, readers: Tensor, comes_before: Callable[[int, int, int], bool]) -> bool:
        """Whether a program alone was there before, or one other that comes before what `lanes` do."""
        ends, own = _ends(lanes, readers), lanes.program
        if ends is None or own is None:
            return False
        low, high = (end >> _TIME_BITS for end in ends)
        if readers is self._first:
            nobody, time = low >= own, _LATEST - (ends[0] & _LATEST)
        else:
            nobody, time = high <= own, ends[1] & _LATEST
        return nobody or (low == high and comes_before(low, time, own))

    def _take_in(self) -> None:
        for lanes, time in self.reads:
            self._add_readers(lanes, time)
        self.reads.clear()
        self.waiting = 0

    def _add_readers(self, lanes: Lanes, time: int) -> None:
        if self._first is None or self._last is None:
            self._claim(self._count())
            self._first = torch.full([self._count()], _NOT_YET, dtype=torch.int64)
            self._last = torch.full([self._count()], NOBODY, dtype=torch.int64)
        units, programs = lanes.touched
        stamped = programs << _TIME_BITS
        self._first.scatter_reduce_(0, units, stamped + (_LATEST - time), "amin")
        self._last.scatter_reduce_(0, units, stamped + time, "amax")

    def _count(self) -> int:
        return self.storage.data.numel() // self.storage.unit

    def _claim(self, units: int) -> None:
        if self.claim is not None:
            self.claim(units * _MAP)

    def refine(self) -> None:
        """Follows the storage to a smaller unit."""
        ratio, self.unit = self.unit // self.storage.unit, self.storage.unit
        if ratio <= 1:
            return
        if self._writers is not None:
            self._claim(self._count())
            known = self._writers
            maps = (known.program, known.time, known.lane, known.barriers)
            self._writers = Writers(*(map.repeat_interleave(ratio) for map in maps))
        if self._first is not None and self._last is not None:
            self._claim(self._count())
            self._first, self._last = (map.repeat_interleave(ratio) for map in (self._first, self._last))
