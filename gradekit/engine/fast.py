"""The fast memory of a launch: loads and stores at full speed, with every address checked and nothing explained.

There are two memories because the two questions cost differently. That a launch is right needs little: bounds, a map
of what was written, and one count (if as many elements were written as lanes wrote, no two lanes met). To say what is
wrong, and where, every lane's element, program and value must be kept, which takes several times as long. Nearly all
runs are right: so each run begins with this memory, which knows right from doubtful. Whatever it cannot prove raises
`Suspicion`, and the whole run is done again with `checked`, which decides and explains. Where both finish, they have
read and written the same values.
"""

import functools
import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from gradekit.engine.atomics import Update, update
from gradekit.engine.lanes import Access, LaunchMemory
from gradekit.engine.masks import Box, cut_to, first_of, padded
from gradekit.engine.memory import Storage, everywhere, strided
from gradekit.engine.values import Affine, Integer, Pointer, Unmade, Value, dense, extremes, materialize, span
from gradekit.observations import Traffic

Shape = Sequence[int]
_TRUE = torch.ones(1, dtype=torch.bool)


class Suspicion(Exception):
    """Something that only the checked memory can judge: the reason is for the engine's own log."""


@dataclass
class Footprint:
    """What this launch has done to one storage, in elements of `itemsize` bytes: the `runs` of consecutive ones that it
    stored, first and end, and a map of the other `touched` ones; `lanes` counts both."""

    loaded: bool = False
    atomic: bool = False
    stored: bool = False
    itemsize: int = 0
    lanes: int = 0
    runs: list[tuple[int, int]] = field(default_factory=list)
    touched: Tensor | None = None

    def map(self, count: int) -> Tensor:
        """The map of `count` elements, for somebody to add to."""
        if self.touched is None:
            self.touched = torch.zeros(count, dtype=torch.bool)
        return self.touched

    def written(self, count: int) -> Tensor | None:
        """Which of `count` elements have been stored; None where all have. Raises Suspicion if two lanes met."""
        self.runs.sort()
        if self.touched is None and any(one[1] > other[0] for one, other in itertools.pairwise(self.runs)):
            raise Suspicion("two lanes wrote to one element")
        if self.touched is None and self.lanes == count:
            return None
        touched = self.map(count)
        for first, end in self.runs:
            touched[first:end] = True
        return None if self.lanes == count and everywhere(touched) else touched


@dataclass
class FastMemory(LaunchMemory):
    """Memory access for one launch; `finish` ends it."""

    traffic: Traffic
    footprints: defaultdict[Storage, Footprint] = field(default_factory=lambda: defaultdict(Footprint))
    explains: ClassVar[bool] = False

    @property
    def in_place(self) -> bool:
        """Whether what is stored depends on what was there: by atomics, for this memory knows no other way."""
        return any(footprint.atomic for footprint in self.footprints.values())

    # --- loads ---------------------------------------------------------------------------------------------------

    def load(self, access: Access, other: Value | None, dtype: torch.dtype) -> Tensor:
        """The elements, lazily broadcast; lanes outside of the mask give `other`. What is the same for all programs is
        kept with its pointer, for those that come later: what a launch has loaded from, it does not store to."""
        pointer, before = access.pointer, self.traffic.loaded
        if pointer.loaded is not None:
            mask, instead, shape, found, moved = pointer.loaded
            if mask is access.mask and instead is other and shape == access.shape:
                self.traffic.loaded += moved
                return found
        found = self._load(access, other, dtype)
        if found.shape[0] < access.shape[0]:
            pointer.loaded = access.mask, other, access.shape, found, self.traffic.loaded - before
        return found

    def _load(self, access: Access, other: Value | None, dtype: torch.dtype) -> Tensor:
        pointer, mask, shape = access.pointer, access.mask, access.shape
        storage = _known(pointer)
        footprint = self.footprints[storage]
        if footprint.stored or footprint.atomic:
            raise Suspicion("a launch reads what it writes")
        footprint.loaded = True
        box = self.box(mask, shape)
        # where Triton leaves it undefined, zero as on NVIDIA's cards
        others = dense(0 if other is None else other, dtype, shape)
        if box.empty:
            return others
        if box.row and others.numel() == 1 and (first := first_of(pointer.offset, shape)) is not None:
            part = self._load_box(storage, dtype, Affine(first, (0, 1), 0, 0), (1, box.row))
            return padded(part, {1: box.row}, others.view(1, 1), (1, math.prod(shape))).view(shape)
        offset = _offsets_of(pointer.offset, box)
        if box.masks:
            part = self._load_masked(storage, dtype, offset, box, cut_to(others, box.cut))
        else:
            part = self._load_box(storage, dtype, offset, box.sizes)
        return padded(part, box.cut, others, shape) if box.cut else part

    def _load_masked(self, storage: Storage, dtype: torch.dtype, offset: Affine, box: Box, others: Tensor) -> Tensor:
        """The elements at the lanes of a box where its masks hold, and `others` elsewhere."""
        active = functools.reduce(torch.logical_and, box.masks)
        count = int(active.sum())
        if count in (0, active.numel()):
            return self._load_box(storage, dtype, offset, box.sizes) if count else others
        self.traffic.loaded += count * (math.prod(box.sizes) // active.numel()) * dtype.itemsize
        starts, along = _apart(offset, active, box.sizes)
        where = Affine(torch.where(active, starts, 0), along, 0, 0)
        _check_ends(span(where, box.sizes), storage.count(dtype.itemsize))
        _check_written(storage, dtype.itemsize, lambda written: _read_lanes(written, where, box.sizes) | ~active)
        return torch.where(active, _read_lanes(storage.typed(dtype), where, box.sizes), others)

    def _load_box(self, storage: Storage, dtype: torch.dtype, offset: Affine, sizes: Shape) -> Tensor:
        """The elements at the lanes of a box, all of which are active."""
        self.traffic.loaded += math.prod(sizes) * dtype.itemsize
        _check_ends(span(offset, sizes), storage.count(dtype.itemsize))
        _check_written(storage, dtype.itemsize, lambda written: _read_lanes(written, offset, sizes))
        return _read_lanes(storage.typed(dtype), offset, sizes)

    # --- stores --------------------------------------------------------------------------------------------------

    def store(self, access: Access, value: Tensor | Unmade) -> None:
        """Writes `value`, lazily broadcast."""
        pointer, mask, shape = access.pointer, access.mask, access.shape
        storage = _known(pointer)
        footprint = self._open(storage, value.dtype.itemsize)
        box = self.box(mask, shape)
        if box.empty:
            return
        if box.row and (first := first_of(pointer.offset, shape)) is not None:
            lanes = dense(value, value.dtype, shape).expand(shape).reshape(1, -1)[:, : box.row]
            self._store_box(storage, footprint, Affine(first, (0, 1), 0, 0), lanes, lanes.shape)
            return
        where = _offsets_of(pointer.offset, box)
        if not box.masks:
            if isinstance(value, Unmade):
                mine: Tensor | Unmade = Unmade(value.function, tuple(cut_to(one, box.cut) for one in value.operands))
            else:
                mine = cut_to(value, box.cut).expand(box.sizes)
            self._store_box(storage, footprint, where, mine, box.sizes)
        else:
            starts, values = _active_together(where, box, value.made() if isinstance(value, Unmade) else value)
            if values.numel():
                self._store_box(storage, footprint, starts, values, values.shape)

    def _open(self, storage: Storage, itemsize: int) -> Footprint:
        footprint = self.footprints[storage]
        if storage.is_input or footprint.loaded or footprint.atomic:
            raise Suspicion("a launch writes to an input, or to what it reads")
        if not footprint.stored:
            footprint.stored, footprint.itemsize = True, itemsize
        elif footprint.itemsize != itemsize:
            raise Suspicion("one storage written with two element sizes")
        return footprint

    def _store_box(
        self, storage: Storage, footprint: Footprint, offset: Affine, value: Tensor | Unmade, sizes: Shape
    ) -> None:
        count, lanes, first = storage.count(footprint.itemsize), math.prod(sizes), first_of(offset, sizes)
        _check_ends(span(offset, sizes), count)
        _check_apart(offset, sizes)
        _write_lanes(storage.to_fill(value.dtype), offset, sizes, value)
        if first is None:
            _write_lanes(footprint.map(count), offset, sizes, _TRUE.expand(sizes))
        else:
            footprint.runs.append((first, first + lanes))
        footprint.lanes += lanes
        self.traffic.stored += lanes * footprint.itemsize

    # --- atomics -------------------------------------------------------------------------------------------------

    def atomic(self, access: Access, change: Update, operands: tuple[Tensor, ...]) -> Tensor:
        """Applies `change` to the elements in program order; the old values."""
        pointer, mask, shape = access.pointer, access.mask, access.shape
        storage = _known(pointer)
        footprint = self.footprints[storage]
        if storage.is_input or footprint.loaded or footprint.stored:
            raise Suspicion("a storage with both atomic and plain access")
        footprint.atomic = True
        dtype = operands[0].dtype
        active = dense(True if mask is None else mask, torch.bool, shape).expand(shape)
        lanes = active.reshape(-1).nonzero().view(-1)
        index = _at(lanes, materialize(_rising(pointer.offset, shape), shape), shape)
        if index.numel():
            _check_ends(extremes(index), storage.count(dtype.itemsize))
        units, written = storage.units(index, dtype.itemsize), storage.written
        if written is not None and not everywhere(written[units]):
            raise Suspicion("an atomic on an element that nobody has written")
        self.traffic.loaded += index.numel() * dtype.itemsize
        self.traffic.stored += index.numel() * dtype.itemsize
        values = tuple(_at(lanes, operand, shape) for operand in operands)
        return update(storage.typed(dtype), index, active, change, values, shape)

    # --- the launch ----------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Ends the launch: as many elements must have been written as lanes wrote; what was written is now readable."""
        for storage, footprint in self.footprints.items():
            if footprint.stored:
                touched = footprint.written(storage.count(footprint.itemsize))
                if touched is not None and int(touched.count_nonzero()) != footprint.lanes:
                    raise Suspicion("two lanes wrote to one element")
                storage.record(touched, footprint.itemsize)


def _known(pointer: Pointer) -> Storage:
    if not isinstance(pointer.storage, Storage):
        raise Suspicion("a pointer that may lead to several storages")
    return pointer.storage


def _check_written(storage: Storage, itemsize: int, seen: Callable[[Tensor], Tensor]) -> None:
    written = storage.written_map(itemsize)
    if written is not None and not (storage.unit == itemsize and everywhere(seen(written))):
        raise Suspicion("reads an element that nobody has written")


def _check_ends(ends: tuple[int, int], count: int) -> None:
    if ends[0] < 0 or ends[1] >= count:
        raise Suspicion("an access out of bounds")


# --- offsets that are Affine in the tile are strided views of a storage: no index is made for each element ------------


def _offsets_of(offset: Integer, box: Box) -> Affine:
    """The offsets of a box's lanes, of which `offset` has those of its shape, as an Affine without negative steps."""
    here = _rising(offset, box.shape)
    return Affine(cut_to(here.base, box.cut), here.steps, 0, 0) if isinstance(here.base, Tensor) else here


def _rising(offset: int | Affine | Tensor, shape: Shape) -> Affine:
    """Any offset as an Affine without negative steps."""
    rank = len(shape)
    if isinstance(offset, Tensor):
        return Affine(offset.to(torch.int64), (0,) * rank, 0, 0)
    if isinstance(offset, int):
        return Affine(offset, (0,) * rank, offset, offset)
    if min(offset.steps) >= 0:
        return offset
    falling = Affine(offset.base, tuple(min(s, 0) for s in offset.steps), 0, 0)
    return Affine(materialize(falling, shape), tuple(max(s, 0) for s in offset.steps), offset.low, offset.high)


# torch's own indexing, flat[index] and value[active], takes five to fifteen times as long as index_select


def _at(lanes: Tensor, value: Tensor, shape: Shape) -> Tensor:
    """What a value that is broadcast to `shape` has at the lanes with these numbers."""
    return value.expand(list(shape)).reshape(-1).index_select(0, lanes)


def _apart(offset: Affine, active: Tensor, sizes: Shape) -> tuple[Tensor, tuple[int, ...]]:
    """Where lanes that are `active` together begin, and their steps: those along axes where no mask varies."""
    along = tuple(step if width == 1 else 0 for step, width in zip(offset.steps, active.shape, strict=True))
    apart = tuple(step - one for step, one in zip(offset.steps, along, strict=True))
    return materialize(Affine(offset.base, apart, 0, 0), sizes), along


def _active_together(offset: Affine, box: Box, value: Tensor) -> tuple[Affine, Tensor]:
    """The offsets of a box's active lanes, [n, *those along axes where no mask varies], and what `value` has there."""
    active = functools.reduce(torch.logical_and, box.masks)
    starts, along = _apart(offset, active, box.sizes)
    order = sorted(range(len(along)), key=lambda axis: along[axis] != 0)
    inner = [axis for axis in order if along[axis]]
    shape = [1 if step else size for step, size in zip(along, box.sizes, strict=True)]
    lanes = active.expand(shape).reshape(-1).nonzero().view(-1)
    values = cut_to(value, box.cut).expand(box.sizes).permute(order).reshape(-1, *[box.sizes[axis] for axis in inner])
    base = _at(lanes, starts, shape).view(-1, *[1] * len(inner))
    return Affine(base, (0, *[along[axis] for axis in inner]), 0, 0), values.index_select(0, lanes)


def _window(flat: Tensor, offset: Affine, sizes: Shape) -> tuple[Tensor, Tensor, list[int], list[int]]:
    """A strided window at every element of `flat`, the positions where programs look through it, and both's axes."""
    axes = [axis for axis, (size, step) in enumerate(zip(sizes, offset.steps, strict=True)) if step and size > 1]
    steps = [offset.steps[axis] for axis in axes]
    extents = [sizes[axis] for axis in axes]
    reach = sum(step * (size - 1) for step, size in zip(steps, extents, strict=True))
    windows = strided(flat, [flat.numel() - reach, *extents], [1, *steps], 0)
    assert isinstance(offset.base, Tensor)
    return windows, offset.base.reshape(-1), [axis for axis in range(len(sizes)) if axis not in axes], axes


def _check_apart(offset: Affine, sizes: Shape) -> None:
    """Each lane must have an address of its own axis by axis."""
    base_shape = offset.base.shape if isinstance(offset.base, Tensor) else [1] * len(sizes)
    if any(
        size > 1 and not step and width == 1 for size, step, width in zip(sizes, offset.steps, base_shape, strict=True)
    ):
        raise Suspicion("two lanes write to one element")


def _read_lanes(flat: Tensor, offset: Affine, sizes: Shape) -> Tensor:
    """The elements of 1-D `flat` at `offset` over `sizes`, lazily broadcast; a view where the base is one number."""
    if isinstance(offset.base, int):
        shape = [size if step else 1 for size, step in zip(sizes, offset.steps, strict=True)]
        return strided(flat, shape, offset.steps, offset.base)
    windows, positions, outer, axes = _window(flat, offset, sizes)
    follow = [offset.steps[axis] for axis in axes] in ([], [1])
    found = windows.index_select(0, positions) if follow else windows[positions]
    shape = [offset.base.shape[axis] for axis in outer] + [sizes[axis] for axis in axes]
    order = [*outer, *axes]
    return found.view(shape).permute([order.index(axis) for axis in range(len(sizes))])


def _write_lanes(flat: Tensor, offset: Affine, sizes: Shape, value: Tensor | Unmade) -> None:
    """Stores `value` (of `sizes`, or broadcast to them) into 1-D `flat` at `offset`."""
    if isinstance(offset.base, int):
        _copy_into(strided(flat, sizes, offset.steps, offset.base), value)
        return
    windows, positions, outer, axes = _window(flat, offset, sizes)
    value = value.made().expand(sizes) if isinstance(value, Unmade) else value
    windows[positions] = value.permute([*outer, *axes]).reshape(positions.numel(), *[sizes[axis] for axis in axes])


def _copy_into(target: Tensor, value: Tensor | Unmade) -> None:
    try:
        if isinstance(value, Unmade):
            value.into(target)
        else:
            target.copy_(value)
    except RuntimeError as error:  # torch refuses targets that overlap themselves
        raise Suspicion("two lanes write to one element") from error
