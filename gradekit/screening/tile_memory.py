"""Loads, stores and atomics of all programs at once, on the storages of a run; whatever touches an element outside is
refused."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gradekit.engine.memory import Memory
from gradekit.screening.tiles import NotWalked, TilePointer, aligned, spread, tile_of


class TileMemory:
    """The storages of one launch: those that a kernel stores to are written in place; an input never is."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def load(self, pointer: TilePointer, mask: Any, other: Any) -> Tensor:
        """The elements at a pointer; `other`, or 0, where the `mask` is False."""
        flat, offsets, mask = self._reached(pointer, mask)
        if mask is not None:
            offsets = torch.where(mask, offsets, 0)
        if not flat.numel():
            found = torch.zeros_like(offsets, dtype=flat.dtype)
        else:
            found = flat.take(offsets)
        if mask is not None:
            filled = 0 if other is None else other
            if isinstance(filled, Tensor):
                filled = aligned(found, filled.to(found.dtype))[1]
            found = torch.where(mask, found, filled)
        return found if found.is_floating_point() or found.dtype is torch.bool else found.long()

    def store(self, pointer: TilePointer, value: Any, mask: Any, count: int) -> None:
        """Writes a value for each of `count` programs."""
        flat, offsets, mask = self._reached(pointer, mask, count)
        written = self._for(offsets, value).to(flat.dtype)
        if mask is None:
            flat[offsets] = written.expand(offsets.shape)
        else:
            flat[offsets[mask]] = written.expand(offsets.shape)[mask]

    def accumulate(self, kind: str, pointer: TilePointer, value: Any, mask: Any, count: int) -> Tensor:
        """tl.atomic_add, _max or _min; what it gives is not known, and NaN."""
        flat, offsets, mask = self._reached(pointer, mask, count)
        added = self._for(offsets, value).to(flat.dtype).expand(offsets.shape)
        if mask is not None:
            offsets, added = offsets[mask], added[mask]
        if kind == "add":
            flat.index_put_((offsets,), added, accumulate=True)
        else:
            flat.scatter_reduce_(0, offsets.reshape(-1), added.reshape(-1), "a" + kind)
        return torch.full((1,), float("nan"))

    def _reached(
        self, pointer: TilePointer, mask: Any, count: int | None = None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """The storage's elements, the offsets and the mask of one shape; for a store, of `count` programs.

        Raises:
            NotWalked: an element lies outside, or an input is stored to.
        """
        storage = self._memory.storages[pointer.storage]
        if count is not None and storage.is_input:
            raise NotWalked("a store to an input")
        flat, offsets = storage.typed(pointer.dtype), tile_of(pointer.offset)
        if mask is not None:
            offsets, mask = torch.broadcast_tensors(*aligned(offsets, tile_of(mask).bool()))
        if count is not None and offsets.shape[0] != count:
            offsets = offsets.expand(count, *offsets.shape[1:])
            mask = mask.expand(offsets.shape) if mask is not None else None
        touched = offsets if mask is None else torch.where(mask, offsets, 0)
        if touched.numel():
            least, most = torch.aminmax(touched)
            if int(least) < 0 or int(most) >= flat.numel() and (mask is None or flat.numel() or bool(mask.any())):
                raise NotWalked("an element outside")
        return flat, offsets, mask

    @staticmethod
    def _for(offsets: Tensor, value: Any) -> Tensor:
        tile = tile_of(value)
        if tile.dim() > offsets.dim():
            raise NotWalked("a tile for one element")
        return spread(tile, offsets.dim())
