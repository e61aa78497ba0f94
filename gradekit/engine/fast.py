"""Loads and stores at full speed, with every address checked but nothing explained.

The ordinary right kernel touches each element where it may and writes each output once; proving that needs only
bounds, a map of what was written, and one count: if as many elements were written as lanes wrote, no two lanes met.
Whatever cannot be proven so cheaply raises `Suspicion`, and the whole run is done again by `checked`, which explains.

Addresses that are Affine in the tile are read and written as strided views, without an index for each element.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch
from torch import Tensor

from gradekit.engine.atomics import Update, update
from gradekit.engine.memory import Storage, everywhere, strided
from gradekit.engine.values import Affine, Conjunction, Pointer, Value, dense, materialize, narrow, span

Shape = Sequence[int]


class Suspicion(Exception):
    """Something that only the checked mode can judge: the reason is for the engine's own log."""


@dataclass
class Traffic:
    """Bytes that lanes asked for, active lanes only."""

    loaded: int = 0
    stored: int = 0


@dataclass
class Footprint:
    """What this launch has done to one storage: `touched` marks stored elements of `itemsize` bytes, `lanes` counts them."""

    loaded: bool = False
    atomic: bool = False
    touched: Tensor | None = None
    itemsize: int = 0
    lanes: int = 0


@dataclass
class FastMemory:
    """Memory access for one launch; `finish` ends it."""

    traffic: Traffic
    footprints: dict[Storage, Footprint] = field(default_factory=dict)
    explains: ClassVar[bool] = False
    _region: tuple[Value | None, Shape, Region] | None = None

    # --- loads ---------------------------------------------------------------------------------------------------

    def load(
        self, pointer: Pointer, mask: Value | None, other: Value | None, dtype: torch.dtype, shape: Shape, site: object
    ) -> Tensor:
        """The elements at `pointer` over `shape` (count, *tile), lazily broadcast; lanes outside `mask` give `other`."""
        storage = _known(pointer)
        footprint = self._footprint(storage)
        if footprint.touched is not None or footprint.atomic:
            raise Suspicion("a launch reads what it writes")
        footprint.loaded = True
        region = self._region_of(mask, shape)
        if region.empty:
            return _other(other, dtype, shape)
        offset = _cut_offset(_lanes(pointer.offset, shape), region)
        if region.whole is None:
            part = self._load_region(storage, dtype, offset, region.sizes, region.sizes)
            return part if not region.cut else _pad(part, region, _other(other, dtype, shape), shape)
        return self._load_split(storage, dtype, offset, region, _other(other, dtype, shape), shape)

    def _load_split(
        self, storage: Storage, dtype: torch.dtype, offset: Affine, region: Region, other: Tensor, shape: Shape
    ) -> Tensor:
        assert region.whole is not None
        result = other.expand(list(shape)).clone()
        target = _cut(result, region)
        for rows, masks in region.split:
            part, sizes = narrow(offset, rows), (rows.numel(), *region.sizes[1:])
            if masks:
                index, active = _active(part, masks, sizes)
                block = target[rows]
                block[active] = self._gather(storage, dtype, index)
                target[rows] = block
            else:
                target[rows] = self._load_region(storage, dtype, part, sizes, sizes).expand(sizes)
        return result

    def _load_region(self, storage: Storage, dtype: torch.dtype, offset: Affine, sizes: Shape, lanes: Shape) -> Tensor:
        self.traffic.loaded += math.prod(lanes) * dtype.itemsize
        written = storage.written_map(dtype.itemsize)
        if written is not None and not (storage.unit == dtype.itemsize and everywhere(_read(written, offset, sizes))):
            raise Suspicion("reads an element that nobody has written")
        return _read(storage.typed(dtype), offset, sizes)

    def _gather(self, storage: Storage, dtype: torch.dtype, index: Tensor) -> Tensor:
        self.traffic.loaded += index.numel() * dtype.itemsize
        _check(index, storage.count(dtype.itemsize))
        if not storage.all_written(index, dtype.itemsize):
            raise Suspicion("reads an element that nobody has written")
        return storage.typed(dtype)[index]

    # --- stores --------------------------------------------------------------------------------------------------

    def store(self, pointer: Pointer, value: Tensor, mask: Value | None, shape: Shape, site: object) -> None:
        """Writes `value` (lazily broadcast) at `pointer` over `shape` (count, *tile) where `mask` is true."""
        storage = _known(pointer)
        footprint = self._open(storage, value.dtype.itemsize)
        region = self._region_of(mask, shape)
        if region.empty:
            return
        offset, value = _cut_offset(_lanes(pointer.offset, shape), region), value.expand(list(shape))
        if region.whole is None:
            self._store_region(storage, footprint, offset, _cut(value, region), region.sizes)
            return
        value = _cut(value, region)
        for rows, masks in region.split:
            part, sizes = narrow(offset, rows), (rows.numel(), *region.sizes[1:])
            if masks:
                index, active = _active(part, masks, sizes)
                self._scatter(storage, footprint, index, value[rows][active])
            else:
                self._store_region(storage, footprint, part, value[rows], sizes)

    def _open(self, storage: Storage, itemsize: int) -> Footprint:
        footprint = self._footprint(storage)
        if storage.is_input or footprint.loaded or footprint.atomic:
            raise Suspicion("a launch writes to an input, or to what it reads")
        if footprint.touched is None:
            footprint.touched = torch.zeros(storage.count(itemsize), dtype=torch.bool)
            footprint.itemsize = itemsize
        elif footprint.itemsize != itemsize:
            raise Suspicion("one storage written with two element sizes")
        return footprint

    def _store_region(
        self, storage: Storage, footprint: Footprint, offset: Affine, value: Tensor, sizes: Shape
    ) -> None:
        assert footprint.touched is not None
        _write(storage.typed(value.dtype), offset, sizes, value)
        _write(footprint.touched, offset, sizes, torch.ones(1, dtype=torch.bool).expand(list(sizes)))
        self._count(footprint, math.prod(sizes))

    def _scatter(self, storage: Storage, footprint: Footprint, index: Tensor, value: Tensor) -> None:
        assert footprint.touched is not None
        _check(index, storage.count(footprint.itemsize))
        storage.typed(value.dtype)[index] = value
        footprint.touched[index] = True
        self._count(footprint, index.numel())

    def _count(self, footprint: Footprint, lanes: int) -> None:
        footprint.lanes += lanes
        self.traffic.stored += lanes * footprint.itemsize

    # --- atomics -------------------------------------------------------------------------------------------------

    def atomic(
        self,
        pointer: Pointer,
        change: Update,
        operands: tuple[Tensor, ...],
        mask: Value | None,
        shape: Shape,
        site: object,
    ) -> Tensor:
        """Applies `change` to the elements at `pointer` in program order; the old values, over `shape`."""
        storage = _known(pointer)
        footprint = self._footprint(storage)
        if storage.is_input or footprint.loaded or footprint.touched is not None:
            raise Suspicion("a storage with both atomic and plain access")
        footprint.atomic = True
        dtype = operands[0].dtype
        index, active = _active(_lanes(pointer.offset, shape), _masks(mask), shape)
        _check(index, storage.count(dtype.itemsize))
        if not storage.all_written(index, dtype.itemsize):
            raise Suspicion("an atomic on an element that nobody has written")
        self.traffic.loaded += index.numel() * dtype.itemsize
        self.traffic.stored += index.numel() * dtype.itemsize
        values = tuple(operand.expand(list(shape))[active] for operand in operands)
        return update(storage.typed(dtype), index, active, change, values, shape)

    # --- the launch ----------------------------------------------------------------------------------------------

    def _region_of(self, mask: Value | None, shape: Shape) -> Region:
        """The region of a mask: most kernels have one for all their accesses."""
        known = self._region
        if known is None or known[0] is not mask or known[1] != shape:
            known = self._region = mask, shape, Region(mask, shape)
        return known[2]

    def _footprint(self, storage: Storage) -> Footprint:
        return self.footprints.setdefault(storage, Footprint())

    def finish(self) -> None:
        """Ends the launch: as many elements must have been written as lanes wrote; what was written is now readable."""
        for storage, footprint in self.footprints.items():
            if footprint.touched is None:
                continue
            if footprint.lanes == footprint.touched.numel() and everywhere(footprint.touched):
                storage.written = None  # every element once
                continue
            if int(torch.count_nonzero(footprint.touched)) != footprint.lanes:
                raise Suspicion("two lanes wrote to one element")
            written = storage.written_map(footprint.itemsize)
            if written is not None:
                units = footprint.touched.repeat_interleave(footprint.itemsize // storage.unit)
                written[: units.numel()] |= units
                storage.settle()


def _known(pointer: Pointer) -> Storage:
    if pointer.storage is None:
        raise Suspicion("a pointer that may lead to several storages")
    storage: Storage = pointer.storage
    return storage


def _check(index: Tensor, count: int) -> None:
    if index.numel():
        low, high = torch.aminmax(index)
        if int(low) < 0 or int(high) >= count:
            raise Suspicion("an access out of bounds")


# --- masks: the part of a tile that is active ------------------------------------------------------------------------


class Region:
    """What a mask leaves of `shape`: a box cut at the high end of some axes, for all programs or for those of `whole`.

    `sizes` is the box; `whole` (None: all) says which programs use all of the box, and `factors` holds the masks that
    decide inside the box for the other programs.
    """

    def __init__(self, mask: Value | None, shape: Shape) -> None:
        self.sizes = list(shape)
        self.cut: dict[int, int] = {}
        self.factors: list[Tensor] = []
        self.empty = mask is False or (isinstance(mask, int) and not mask)
        self.whole: Tensor | None = None
        for factor in _masks(mask):
            if not everywhere(factor):
                self._take(factor)
        if self.factors:
            self._find_whole_programs()

    def _take(self, factor: Tensor) -> None:
        """A mask along one axis that is true up to some point cuts that axis; any other is kept as a factor."""
        axes = [axis for axis, size in enumerate(factor.shape) if size > 1]
        if len(axes) <= 1 and (not axes or axes[0] > 0):
            keep = int(factor.sum())
            if not keep:
                self.empty = True
                return
            if axes and everywhere(factor.narrow(axes[0], 0, keep)):
                self.sizes[axes[0]] = self.cut[axes[0]] = min(keep, self.sizes[axes[0]])
                return
        self.factors.append(factor)

    def _find_whole_programs(self) -> None:
        for axis, size in self.cut.items():
            self.factors = [f.narrow(axis, 0, size) if f.shape[axis] > 1 else f for f in self.factors]
        whole = torch.ones(self.sizes[0], dtype=torch.bool)
        for factor in self.factors:
            whole &= factor.flatten(1).all(1) if factor.dim() > 1 else factor
        self.whole = whole

    @functools.cached_property
    def split(self) -> list[tuple[Tensor, list[Tensor]]]:
        """(positions of programs, masks for them): the whole ones without a mask, then the rest with theirs."""
        assert self.whole is not None
        whole, rest = self.whole.nonzero().view(-1), (~self.whole).nonzero().view(-1)
        parts: list[tuple[Tensor, list[Tensor]]] = [(whole, [])] if whole.numel() else []
        return [*parts, (rest, [narrow(factor, rest) for factor in self.factors])] if rest.numel() else parts


def _masks(mask: Value | None) -> list[Tensor]:
    if isinstance(mask, Conjunction):
        return list(mask.factors)
    if isinstance(mask, Tensor):
        return [mask]
    if mask is False or mask == 0 and mask is not None:
        return [torch.zeros(1, dtype=torch.bool)]
    return []


def _cut(value: Tensor, region: Region) -> Tensor:
    for axis, size in region.cut.items():
        value = value.narrow(axis, 0, size) if value.shape[axis] > 1 else value
    return value


def _cut_offset(offset: Affine, region: Region) -> Affine:
    """The offsets of the lanes that `region` keeps: only a base that differs from lane to lane needs cutting."""
    if isinstance(offset.base, int) or not region.cut:
        return offset
    return replace(offset, base=_cut(offset.base, region))


def _pad(part: Tensor, region: Region, other: Tensor, shape: Shape) -> Tensor:
    sizes = [max(a, b) for a, b in zip(part.shape, other.shape, strict=True)]
    for axis in region.cut:
        sizes[axis] = shape[axis]
    result = torch.empty(sizes, dtype=part.dtype)
    for axis, size in region.cut.items():
        rest = result.narrow(axis, size, shape[axis] - size)
        rest.copy_(other.narrow(axis, size, shape[axis] - size) if other.shape[axis] > 1 else other)
    _cut(result, region).copy_(part)
    return result


def _other(other: Value | None, dtype: torch.dtype, shape: Shape) -> Tensor:
    """What masked lanes give: the kernel's `other`, or zero as on NVIDIA's cards, where Triton leaves it undefined."""
    return dense(0 if other is None else other, dtype, shape)


# --- addresses -------------------------------------------------------------------------------------------------------


def _lanes(offset: int | Affine | Tensor, shape: Shape) -> Affine:
    """Any offset as an Affine without negative steps, so that it can be a strided view."""
    rank = len(shape)
    if isinstance(offset, Tensor):
        return Affine(offset.to(torch.int64), (0,) * rank, 0, 0)
    if isinstance(offset, int):
        return Affine(offset, (0,) * rank, offset, offset)
    if min(offset.steps) >= 0:
        return offset
    falling = Affine(offset.base, tuple(min(s, 0) for s in offset.steps), 0, 0)
    return Affine(materialize(falling, shape), tuple(max(s, 0) for s in offset.steps), offset.low, offset.high)


def _active(offset: Affine, masks: list[Tensor], shape: Shape) -> tuple[Tensor, Tensor]:
    """The element positions of the active lanes, 1-D, and which lanes of `shape` are active."""
    active = torch.ones(1, dtype=torch.bool)
    for mask in masks:
        active = active & mask
    active = active.expand(list(shape))
    return materialize(offset, shape).expand(list(shape))[active], active


def _window(flat: Tensor, offset: Affine, sizes: Shape) -> tuple[Tensor, Tensor, list[int]]:
    """A strided window at every element of `flat`, the positions where programs look through it, and its axes."""
    axes = [axis for axis, (size, step) in enumerate(zip(sizes, offset.steps, strict=True)) if step and size > 1]
    steps = [offset.steps[axis] for axis in axes]
    extents = [sizes[axis] for axis in axes]
    reach = sum(step * (size - 1) for step, size in zip(steps, extents, strict=True))
    windows = strided(flat, [flat.numel() - reach, *extents], [1, *steps], 0)
    assert isinstance(offset.base, Tensor)
    return windows, offset.base.reshape(-1), axes


def _inside(flat: Tensor, offset: Affine, sizes: Shape) -> None:
    low, high = span(offset, sizes)
    if low < 0 or high >= flat.numel():
        raise Suspicion("an access out of bounds")


def _read(flat: Tensor, offset: Affine, sizes: Shape) -> Tensor:
    """The elements of 1-D `flat` at `offset` over `sizes`, lazily broadcast; a view where the base is one number."""
    _inside(flat, offset, sizes)
    if isinstance(offset.base, int):
        shape = [size if step else 1 for size, step in zip(sizes, offset.steps, strict=True)]
        return strided(flat, shape, offset.steps, offset.base)
    windows, positions, axes = _window(flat, offset, sizes)
    found = windows[positions]
    outer = [axis for axis in range(len(sizes)) if axis not in axes]
    shape = [offset.base.shape[axis] for axis in outer] + [sizes[axis] for axis in axes]
    order = [*outer, *axes]
    return found.view(shape).permute([order.index(axis) for axis in range(len(sizes))])


def _write(flat: Tensor, offset: Affine, sizes: Shape, value: Tensor) -> None:
    """Stores `value` (of `sizes`) into 1-D `flat` at `offset`; each lane must have an address of its own axis by axis."""
    _inside(flat, offset, sizes)
    base_shape = offset.base.shape if isinstance(offset.base, Tensor) else [1] * len(sizes)
    if any(
        size > 1 and not step and width == 1 for size, step, width in zip(sizes, offset.steps, base_shape, strict=True)
    ):
        raise Suspicion("two lanes write to one element")
    if isinstance(offset.base, int):
        _copy_into(strided(flat, sizes, offset.steps, offset.base), value)
        return
    windows, positions, axes = _window(flat, offset, sizes)
    outer = [axis for axis in range(len(sizes)) if axis not in axes]
    windows[positions] = value.permute([*outer, *axes]).reshape(positions.numel(), *[sizes[axis] for axis in axes])


def _copy_into(target: Tensor, value: Tensor) -> None:
    try:
        target.copy_(value)
    except RuntimeError as error:  # torch refuses targets that overlap themselves
        raise Suspicion("two lanes write to one element") from error
