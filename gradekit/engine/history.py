"""Who has read and written what in one launch: for each unit of a storage, the programs that were there.

An access is stamped with its time: how many atomics the launch had executed (see ordering.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor

from gradekit.engine.lanes import Lanes
from gradekit.engine.memory import Storage

NOBODY = -1
WAITING, MOST_WAITING = 1 << 16, 1 << 23
"""How many lanes may always wait in a storage's history; in that of a large storage,
one for each unit, up to a limit."""
_TIME_BITS = 31
_LATEST = (1 << _TIME_BITS) - 1
_NOT_YET = torch.iinfo(torch.int64).max
_MAP = 16
"""Bytes that it takes to know the writers of a unit, or its readers."""


@dataclass(slots=True)
class Writes:
    """One store, when it happened, and how many barriers each of its programs had passed (None: none has any)."""

    lanes: Lanes
    time: int
    barriers: Tensor | None


@dataclass(slots=True)
class Writers:
    """For each unit: the program that wrote it last (NOBODY where none has), the time, which of its lanes did, and how
    many barriers it had passed."""

    program: Tensor
    time: Tensor
    lane: Tensor
    barriers: Tensor

    def only(self, lanes: Lanes) -> int | None:
        """The program that wrote all units of `lanes` last (NOBODY where none has); None where these are lanes of
        several programs, or were written by several."""
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
    writes: list[Writes] = field(default_factory=list)
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

    def write(self, write: Writes) -> None:
        """Records a store."""
        self.writes.append(write)
        self._wait(write.lanes)

    def _wait(self, lanes: Lanes) -> None:
        self.waiting += lanes.index.numel()
        if self.waiting > min(max(WAITING, self._count()), MOST_WAITING):
            self._take_in()
            self.writers()

    def writers(self) -> Writers | None:
        """Who wrote each unit last; None where nobody has written anywhere."""
        for write in self.writes:
            self._add(write)
        self.writes.clear()
        return self._writers

    def _add(self, write: Writes) -> None:
        if self._writers is None:
            self._claim(self._count())
            self._writers = Writers(*(torch.full([self._count()], NOBODY, dtype=torch.int32) for _ in range(4)))
        known, run, alone = self._writers, write.lanes.run, write.lanes.program
        if run is not None and alone is not None:
            known.program[run], known.time[run] = alone, write.time
            known.lane[run] = write.lanes.by_unit(write.lanes.positions)
            known.barriers[run] = 0 if write.barriers is None else write.barriers[alone]
            return
        units, programs = write.lanes.touched
        known.program.index_copy_(0, units, programs.to(torch.int32))
        known.time.index_fill_(0, units, write.time)
        known.lane.index_copy_(0, units, write.lanes.by_unit(write.lanes.positions).to(torch.int32))
        if write.barriers is None:
            known.barriers.index_fill_(0, units, 0)
        else:
            known.barriers.index_copy_(0, units, write.barriers.index_select(0, programs).to(torch.int32))

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
        run, alone = lanes.run, lanes.program
        if run is not None and alone is not None:
            self._first[run].clamp_(max=(alone << _TIME_BITS) + _LATEST - time)
            self._last[run].clamp_(min=(alone << _TIME_BITS) + time)
            return
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
