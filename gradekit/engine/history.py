"""Who has read and written what in one launch: for each unit of a storage, the programs that were there."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from gradekit.engine.lanes import Lanes
from gradekit.engine.memory import Storage

NOBODY = -1
NOBODY_YET = torch.iinfo(torch.int64).max
WAITING = 1 << 16
"""How many lanes may always wait in a storage's history; in that of a large storage, four for each unit."""


@dataclass
class AccessHistory:
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
        """Records that `lanes` were read."""
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
