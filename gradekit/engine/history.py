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

    def readers(self, lanes: Lanes) -> Iterator[tuple[Tensor, Callable[[], tuple[Tensor, Tensor]]]]:
        """Which units of `lanes` a program before or after their own has read, with what gives the first, or last, of
        these programs for each unit and the time at which it did last."""
        self._take_in()
        if self._first is None or self._last is None:
            return
        first, last, own = lanes.of(self._first), lanes.of(self._last), lanes.own
        yield first < own << _TIME_BITS, lambda: (first >> _TIME_BITS, _LATEST - (first & _LATEST))
        yield last >= own + 1 << _TIME_BITS, lambda: (last >> _TIME_BITS, last & _LATEST)

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
