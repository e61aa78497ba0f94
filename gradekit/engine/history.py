"""Who has read and written what in one launch: for each unit of a storage, the programs that were there.

An access is stamped with its time: how many atomics the launch had executed (see ordering.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from gradekit.engine.lanes import Lanes
from gradekit.engine.memory import Storage

NOBODY = -1
WAITING = 1 << 16
"""How many lanes may always wait in a storage's history; in that of a large storage, four for each unit."""
_TIMES = 1 << 31
_NOT_YET = torch.iinfo(torch.int64).max


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

    Few launches read what they write: accesses wait here until somebody asks who was there.
    """

    storage: Storage
    unit: int
    writes: list[Writes] = field(default_factory=list)
    reads: list[tuple[Lanes, int]] = field(default_factory=list)
    waiting: int = 0
    _writers: Writers | None = None
    _first: Tensor | None = None
    _last: Tensor | None = None

    def read(self, lanes: Lanes, time: int) -> None:
        """Records that `lanes` were read."""
        self.reads.append((lanes, time))
        self.waiting += lanes.index.numel()
        if self.waiting > max(WAITING, 4 * self._count()):
            self.readers()

    def writers(self) -> Writers | None:
        """Who wrote each unit last; None where nobody has written anywhere."""
        for write in self.writes:
            self._add(write)
        self.writes.clear()
        return self._writers

    def _add(self, write: Writes) -> None:
        if self._writers is None:
            self._writers = Writers(*(torch.full([self._count()], NOBODY, dtype=torch.int64) for _ in range(4)))
        known, (units, programs) = self._writers, write.lanes.touched
        known.program.index_copy_(0, units, programs)
        known.time.index_fill_(0, units, write.time)
        known.lane.index_copy_(0, units, write.lanes.by_unit(write.lanes.positions))
        passed = 0 if write.barriers is None else write.barriers.index_select(0, programs)
        known.barriers[units] = passed

    def readers(self) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]] | None:
        """The first and the last program that read each unit, each with the time at which it did last; None where nobody
        has read anywhere. Where nobody read a unit, the first program is very large and the last is NOBODY."""
        for lanes, time in self.reads:
            self._add_readers(lanes, time)
        self.reads.clear()
        self.waiting = 0
        if self._first is None or self._last is None:
            return None
        first = self._first.div(_TIMES, rounding_mode="floor"), _TIMES - 1 - self._first % _TIMES
        return first, (self._last.div(_TIMES, rounding_mode="floor"), self._last % _TIMES)

    def _add_readers(self, lanes: Lanes, time: int) -> None:
        if self._first is None or self._last is None:
            self._first = torch.full([self._count()], _NOT_YET, dtype=torch.int64)
            self._last = torch.full([self._count()], NOBODY, dtype=torch.int64)
        units, programs = lanes.touched
        self._first.scatter_reduce_(0, units, programs * _TIMES + (_TIMES - 1 - time), "amin")
        self._last.scatter_reduce_(0, units, programs * _TIMES + time, "amax")

    def _count(self) -> int:
        return self.storage.data.numel() // self.storage.unit

    def refine(self) -> None:
        """Follows the storage to a smaller unit."""
        ratio, self.unit = self.unit // self.storage.unit, self.storage.unit
        if ratio <= 1:
            return
        if self._writers is not None:
            known = self._writers
            maps = (known.program, known.time, known.lane, known.barriers)
            self._writers = Writers(*(map.repeat_interleave(ratio) for map in maps))
        if self._first is not None and self._last is not None:
            self._first, self._last = (map.repeat_interleave(ratio) for map in (self._first, self._last))
