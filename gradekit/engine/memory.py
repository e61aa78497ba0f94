"""The memory of a run: storages in one virtual address space, with a record of what has been written.

Storages lie far apart (guard gaps), so that a byte address tells its storage and an access that runs off one end does
not land in a neighbour. Memory that nobody has written holds 0xFF bytes: NaN in every floating-point format.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from gradekit.engine.budget import Limit
from gradekit.program import ADDRESS_GAP, Fold, View

POISON = 0xFF  # byte that fills memory nobody has written


@dataclass(eq=False)
class Storage:
    """A run of bytes: `data` uint8 [nbytes]; `written` is a bool for each unit of `unit` bytes, or None when all are.

    An input is never to be written. `address` is where it begins in the virtual address space.
    A `fresh` one has been allocated and not looked at: its poison and its map are made when somebody first asks.
    Where there is a `fold`, `data` has what it keeps.
    """

    id: int
    data: Tensor
    address: int
    is_input: bool = False
    unit: int = 1
    written: Tensor | None = None
    owned: bool = False
    fresh: bool = False
    fold: Fold | None = None
    _views: dict[torch.dtype, Tensor] = field(default_factory=dict)

    def count(self, itemsize: int) -> int:
        """How many whole elements of `itemsize` bytes it holds."""
        return self.data.numel() // itemsize

    def places_of(self, elements: Tensor, itemsize: int) -> Tensor:
        """Elements (int64) as kernels know them, by their places in `data`: outside of it where it keeps none."""
        if self.fold is None:
            return elements
        places = elements * itemsize
        turn = places.div(self.fold.period, rounding_mode="floor")
        rest = places - turn * self.fold.period
        beside = (places < 0) | (rest >= self.fold.kept)
        found = torch.where(beside, places + (places >= 0) * self.data.numel(), turn * self.fold.kept + rest)
        return found.div(itemsize, rounding_mode="floor")

    def typed(self, dtype: torch.dtype) -> Tensor:
        """All of it as a 1-D tensor of `dtype` that shares its memory."""
        self._begin()
        return self.to_fill(dtype)

    def to_fill(self, dtype: torch.dtype) -> Tensor:
        """The same for somebody who only writes, and then says what (`record`)."""
        if dtype not in self._views:
            usable = self.data[: self.data.numel() // dtype.itemsize * dtype.itemsize]
            self._views[dtype] = usable.view(dtype)
        return self._views[dtype]

    def _begin(self, kept: Tensor | None = None) -> None:
        """Makes the poison, but for the bytes that are `kept`, and the map."""
        if self.fresh:
            size = self.data.numel()
            self.fresh, self.unit = False, next(unit for unit in (8, 4, 2, 1) if size % unit == 0)
            self.written = torch.zeros(size // self.unit, dtype=torch.bool)
            if kept is None:
                self.data.fill_(POISON)
            else:
                self.data[: kept.numel()].masked_fill_(~kept, POISON)
                self.data[kept.numel() :] = POISON

    def written_map(self, itemsize: int) -> Tensor | None:
        """`written` in units of at most `itemsize` bytes: refined where it was coarser."""
        self._begin()
        if itemsize < self.unit:
            if self.written is not None:
                self.written = self.written.repeat_interleave(self.unit // itemsize)
            self.unit = itemsize
        return self.written

    def units(self, elements: Tensor, itemsize: int) -> Tensor:
        """The positions in `written` of elements (1-D int64) of `itemsize` bytes."""
        self.written_map(itemsize)
        ratio = itemsize // self.unit
        if ratio <= 1:
            return elements
        return (elements[:, None] * ratio + torch.arange(ratio)).reshape(-1)

    def record(self, touched: Tensor | None, itemsize: int) -> None:
        """Records what has been written `to_fill` it: the elements where `touched` holds, or all of them (None)."""
        if touched is None:
            self.fresh, self.written = False, None
            return
        self._begin(touched.repeat_interleave(itemsize) if self.fresh else None)
        written = self.written_map(itemsize)
        if written is not None:
            units = touched.repeat_interleave(itemsize // self.unit)
            written[: units.numel()] |= units
            self.settle()

    def settle(self) -> None:
        """Forgets the map once everything is written."""
        if self.written is not None and everywhere(self.written):
            self.written = None


class Memory:
    """The storages of one run, by id: at the program's `addresses`, where it has written some down; some in `folds`."""

    def __init__(self, addresses: Mapping[int, int] | None = None, folds: Mapping[int, Fold] | None = None) -> None:
        self.storages: dict[int, Storage] = {}
        self.allocated = 0
        self._addresses, self._folds = addresses or {}, folds or {}

    def _address(self, id: int) -> int:
        told = self._addresses.get(id, 0)
        usable = told > 0 and told % ADDRESS_GAP == 0 and told < 1 << 63
        return told if usable else (id + 1) * ADDRESS_GAP

    def at_gaps(self) -> dict[int, Storage]:
        """The storage that owns the addresses from k * ADDRESS_GAP on, by k."""
        return {storage.address // ADDRESS_GAP: storage for storage in self.storages.values()}

    def place_input(self, id: int, data: Tensor, written: Tensor | None = None, unit: int = 1) -> Storage:
        """An input's bytes (shared until somebody stores to them); elements of no view count as unwritten."""
        return self._placed(id, data, is_input=True, unit=unit, written=written)

    def allocate(self, id: int, nbytes: int) -> Storage:
        """`nbytes` of poison."""
        self.allocated += nbytes
        return self._placed(id, torch.empty([nbytes], dtype=torch.uint8), fresh=True)

    def _placed(self, id: int, data: Tensor, **more: Any) -> Storage:
        self.storages[id] = Storage(id, data, self._address(id), fold=self._folds.get(id), **more)
        return self.storages[id]


def own(storage: Storage) -> None:
    """Gives an input bytes of its own before the first write: the caller's tensor stays as it is."""
    if storage.is_input and not storage.owned:
        storage.data = storage.data.clone()
        storage._views.clear()
        storage.owned = True


def everywhere(mask: Tensor) -> bool:
    """Whether a bool tensor is true throughout: the smallest byte, which torch finds 20 times faster than all()."""
    return mask.numel() == 0 or bool(mask.view(torch.uint8).amin())


def anywhere(mask: Tensor) -> bool:
    """Whether a bool tensor is true for any element: as `everywhere`, by the largest byte."""
    return mask.numel() > 0 and bool(mask.view(torch.uint8).amax())


def first_true(mask: Tensor, most: int) -> Tensor:
    """The numbers, in row-major order, of the first so many elements of a bool tensor that are true: int64, 1-D. A
    piece at a time is looked at, for a position takes eight times the memory of its element."""
    found: list[Tensor] = []
    for start, part in enumerate(mask.reshape(-1).split(Limit.PIECE)):
        found.append(part.nonzero().view(-1)[:most] + start * Limit.PIECE)
        if sum(map(len, found)) >= most:
            break
    return torch.cat(found)[:most] if found else torch.empty(0, dtype=torch.int64)


def index_of(number: int, shape: Sequence[int]) -> tuple[int, ...]:
    """The index along each dimension of the element that is at `number` in row-major order."""
    index = list[int]()
    for size in reversed(shape):  # torch.unravel_index imports sympy, which takes a second
        number, place = divmod(number, size)
        index.append(place)
    return tuple(reversed(index))


def strided(flat: Tensor, shape: Sequence[int], stride: Sequence[int], offset: int) -> Tensor:
    """A view of a 1-D tensor by sizes, strides and offset in elements, relative to that tensor's own start."""
    return flat.as_strided(list(shape), list(stride), flat.storage_offset() + offset)


def index_in(view: View, positions: Tensor) -> tuple[list[Tensor], Tensor]:
    """By axis of a view, the index of the elements at `positions` of its storage (int64, 1-D); and which it has."""
    rest, index = positions - view.offset, [torch.zeros_like(positions)] * len(view.shape)
    inside = torch.full_like(positions, 0 not in view.shape, dtype=torch.bool)
    for axis in sorted(range(len(view.shape)), key=lambda a: -view.stride[a]):
        if view.stride[axis] > 0 and view.shape[axis] > 1:
            index[axis] = rest.div(view.stride[axis], rounding_mode="floor")
            inside &= (index[axis] >= 0) & (index[axis] < view.shape[axis])
            rest = rest - index[axis] * view.stride[axis]
    return index, inside & (rest == 0)


def view_bytes(tensor: Tensor) -> Tensor:
    """The bytes of a tensor's whole storage, uint8 [nbytes], sharing its memory."""
    return torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())


@functools.lru_cache(maxsize=256)
def covered(nbytes: int, itemsize: int, shape: tuple[int, ...], stride: tuple[int, ...], offset: int) -> Tensor | None:
    """The elements of a storage that a view has: bool [nbytes // itemsize], None for all. Shared: never write to it."""
    seen = torch.zeros(nbytes // itemsize, dtype=torch.bool)
    strided(seen, shape, stride, offset).fill_(True)
    return None if everywhere(seen) else seen
