"""Loads, stores and atomics of all programs at once, on the storages of a run. An access out of bounds is refused."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from gradekit.engine.memory import Memory, Storage
from gradekit.interpreter.tile_values import NotWalked, OutsideEverywhere, TilePointer, aligned, spread, tile_of


class TileMemory:
    """The storages of a launch, written in place; an input never is.

    Where a launch is evaluated in several `copies`, each has its own programs, and its own part of every storage but
    the inputs; `lost` says which copies have gone out of bounds. A `lenient` memory takes the first element in place of
    one that is out of bounds, and sets `strays`.
    """

    def __init__(self, memory: Memory, copies: int = 1, programs: int = 1, lenient: bool = False) -> None:
        self._memory, self._copies, self._programs = memory, copies, programs
        self._lenient, self.strays = lenient, False
        self.touched: dict[int, Tensor] | None = None  # which elements of each storage, where that is asked for
        self.stored: set[int] = set()  # the storages that were stored to
        self._only: tuple[int, int] | None = None  # that one, by its number, of so many copies
        self.lost = torch.zeros(copies, dtype=torch.bool)
        self._meant: Tensor | None = None  # the copies that need what is evaluated now, if not all

    def lose(self, wrong: Tensor) -> None:
        """Gives up the copies in whose rows something is wrong.

        Raises:
            OutsideEverywhere: these are all.
        """
        found = wrong.reshape(self._copies, -1).any(1)
        self.lost |= found if self._meant is None else found & self._meant
        if bool(self.lost.all()):
            raise OutsideEverywhere

    def lose_copy(self, number: int) -> None:
        """Gives up one copy.

        Raises:
            OutsideEverywhere: no other is left.
        """
        self.lost[number] = True
        if bool(self.lost.all()):
            raise OutsideEverywhere

    def part(self, number: int) -> TileMemory:
        """The storages of one of the copies."""
        one = TileMemory(self._memory, 1, self._programs)
        one._only = (number, self._copies) if self._copies > 1 else None
        return one

    def _storage(self, id: int) -> Storage:
        storage = self._memory.storages[id]
        if self._only is None or storage.is_input:
            return storage
        number, copies = self._only
        size, data = storage.data.numel() // copies, storage.typed(torch.uint8)
        return Storage(id, data[number * size : (number + 1) * size], storage.name, storage.address)

    @contextlib.contextmanager
    def meant_for(self, copies: Tensor) -> Iterator[None]:
        """While open, what is touched counts for these copies alone: others do not need what is evaluated."""
        before = self._meant
        self._meant = copies if before is None else copies & before
        try:
            yield
        finally:
            self._meant = before

    def load(self, pointer: TilePointer, mask: Any, other: Any) -> Tensor:
        """The elements at a pointer; `other`, or 0, where the `mask` is False."""
        flat, offsets, mask = self._reached(pointer, mask)
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
        storage = self._storage(pointer.storage)
        if count is not None:
            if storage.is_input:
                raise NotWalked("a store to an input")
            self.stored.add(pointer.storage)
        flat, offsets = storage.typed(pointer.dtype), tile_of(pointer.offset)
        if mask is not None:
            offsets, mask = torch.broadcast_tensors(*aligned(offsets, tile_of(mask).bool()))
        rows = count if self._copies == 1 or storage.is_input else self._copies * self._programs
        if rows is not None and offsets.shape[0] != rows:
            offsets = offsets.expand(rows, *offsets.shape[1:])
            mask = mask.expand(offsets.shape) if mask is not None else None
        most = flat.numel() if storage.is_input else flat.numel() // self._copies
        offsets = self._inside(offsets, mask, most)
        if self.touched is not None:
            seen = self.touched.setdefault(pointer.storage, torch.zeros(most, dtype=torch.bool))
            seen[offsets if mask is None else offsets[mask]] = True
        if self._copies > 1 and not storage.is_input:
            if storage.data.numel() // self._copies % pointer.dtype.itemsize:
                raise NotWalked("a storage of broken elements")
            first = torch.arange(self._copies).repeat_interleave(self._programs) * most
            offsets = offsets + first.reshape(-1, *(1 for _ in range(offsets.dim() - 1)))
        return flat, offsets, mask

    def _inside(self, offsets: Tensor, mask: Tensor | None, most: int) -> Tensor:
        """The offsets, 0 in place of those that the mask leaves out, or that lie outside in a copy that is lost now."""
        touched = offsets if mask is None else torch.where(mask, offsets, 0)
        if not touched.numel():
            return touched
        low, high = torch.aminmax(touched)
        if int(low) >= 0 and int(high) < most:
            return touched
        outside = (touched < 0) | (touched >= most)
        if mask is not None:
            outside = outside & mask
        if self._lenient and most:
            self.strays = True
            return torch.where(outside, 0, touched)
        if self._copies == 1 or not most:
            if most or bool(outside.any()):
                raise OutsideEverywhere
            return touched
        is_for_all = touched.shape[0] == 1
        self.lose(torch.ones(self._copies, dtype=torch.bool) if is_for_all else outside)
        return torch.where(outside, 0, touched)

    @staticmethod
    def _for(offsets: Tensor, value: Any) -> Tensor:
        tile = tile_of(value)
        if tile.dim() > offsets.dim():
            raise NotWalked("a tile for one element")
        return spread(tile, offsets.dim())
