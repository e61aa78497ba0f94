"""Loads, stores and atomics of all programs at once, on the storages of a run; whatever touches an element outside is
refused."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from gradekit.engine.memory import Memory, Storage
from gradekit.screening.tile_values import NotWalked, OutsideEverywhere, TilePointer, aligned, spread, tile_of


class TileMemory:
    """The storages of a launch: those that a kernel stores to are written in place; an input never is.

    Of `copies` of the launch, which differ in one expression, each has its own programs, and its own part of every
    storage but the inputs. `lost` says which of them have touched an element outside. A `lenient` one notes that it
    `strays`, and takes the first element in place of one that lies outside.
    """

    def __init__(self, memory: Memory, copies: int = 1, programs: int = 1, lenient: bool = False) -> None:
        self._memory, self._copies, self._programs = memory, copies, programs
        self._lenient, self.strays = lenient, False
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
        return TileMemory(part_of(self._memory, number, self._copies), 1, self._programs)

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
        storage = self._memory.storages[pointer.storage]
        if count is not None and storage.is_input:
            raise NotWalked("a store to an input")
        flat, offsets = storage.typed(pointer.dtype), tile_of(pointer.offset)
        if mask is not None:
            offsets, mask = torch.broadcast_tensors(*aligned(offsets, tile_of(mask).bool()))
        rows = count if self._copies == 1 or storage.is_input else self._copies * self._programs
        if rows is not None and offsets.shape[0] != rows:
            offsets = offsets.expand(rows, *offsets.shape[1:])
            mask = mask.expand(offsets.shape) if mask is not None else None
        most = flat.numel() if storage.is_input else flat.numel() // self._copies
        offsets = self._inside(offsets, mask, most)
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


def part_of(memory: Memory, number: int, copies: int) -> Memory:
    """The storages of one of several copies: views."""
    if copies == 1:
        return memory
    other = Memory()
    other.storages |= {id: part_of_storage(storage, number, copies) for id, storage in memory.storages.items()}
    return other


def part_of_storage(storage: Storage, number: int, copies: int) -> Storage:
    """What one of several copies has of a storage: of an input, all of it."""
    one = copy.copy(storage)
    if not storage.is_input:
        size = storage.data.numel() // copies
        one.data, one._views, one.written = storage.data[number * size : (number + 1) * size], {}, None
    return one
