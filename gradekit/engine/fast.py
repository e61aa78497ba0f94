"""Loads and stores at full speed, with every address checked but nothing explained.

The ordinary right kernel touches each element where it may and writes each output once; proving that needs only
bounds, a map of what was written, and one count: if as many elements were written as lanes wrote, no two lanes met.
Whatever cannot be proven so cheaply raises `Suspicion`, and the whole run is done again by `checked`, which explains.

Addresses that are Affine in the tile are read and written as strided views, without an index for each element.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from gradekit.engine.atomics import Update, update
from gradekit.engine.memory import Storage, everywhere, strided
from gradekit.engine.values import (
    Affine,
    Below,
    Conjunction,
    Integer,
    Later,
    Pointer,
    Value,
    dense,
    materialize,
    narrow,
    settled,
    span,
    varying_axes,
    within,
)

Shape = Sequence[int]
_TRUE = torch.ones(1, dtype=torch.bool)


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
        if region.parts is None:
            part = self._load_part(storage, dtype, pointer.offset, region.box, shape)
            return part if not region.box.cut else _pad(part, region.box.cut, _other(other, dtype, shape), shape)
        result = _other(other, dtype, shape).expand(shape).clone()
        for box in region.parts:
            self._load_into(result, storage, pointer.offset, box)
        return result

    def _load_part(self, storage: Storage, dtype: torch.dtype, offset: Integer, box: Box, shape: Shape) -> Tensor:
        found = self._load_region(storage, dtype, _lanes(offset, box, shape), box.sizes)
        if not isinstance(offset, Later):
            return found
        varying = varying_axes(offset)
        return found.expand([n if axis in varying else 1 for axis, n in enumerate(box.sizes)]).contiguous()

    def _load_into(self, result: Tensor, storage: Storage, offset: Integer, box: Box) -> None:
        where = _lanes(offset, box, result.shape)
        if not box.masks:
            found = self._load_region(storage, result.dtype, where, box.sizes).expand(box.sizes)
        else:
            index, active = _active(where, box.masks, box.sizes)
            found = _cut(result, box.cut)[box.programs]
            found[active] = self._gather(storage, result.dtype, index)
        _cut(result, box.cut)[box.programs] = found

    def _load_region(self, storage: Storage, dtype: torch.dtype, offset: Affine, sizes: Shape) -> Tensor:
        """The elements at `offset` over `sizes`, all of which are active."""
        self.traffic.loaded += math.prod(sizes) * dtype.itemsize
        _inside(storage.count(dtype.itemsize), offset, sizes)
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
        value = value.expand(shape)
        for box in (region.box,) if region.parts is None else region.parts:
            where, mine = _lanes(pointer.offset, box, shape), _cut(value, box.cut)[box.programs]
            if not box.masks:
                self._store_region(storage, footprint, where, mine, box.sizes)
            else:
                index, active = _active(where, box.masks, box.sizes)
                self._scatter(storage, footprint, index, mine[active])

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
        _inside(storage.count(footprint.itemsize), offset, sizes)
        _apart(offset, sizes)
        _write(storage.typed(value.dtype), offset, sizes, value)
        _write(footprint.touched, offset, sizes, _TRUE.expand(sizes))
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
        index, active = _active(_rising(settled(pointer.offset), shape), _masks(mask, shape), shape)
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

MOST_RAGGED = 8
"""Programs with an end of their own that are taken one by one."""


@dataclass(slots=True)
class Box:
    """Active lanes: of some programs, up to a point along the axes that are `cut`; `sizes` in all, and the `masks` that
    decide inside of it."""

    programs: slice | Tensor
    cut: dict[int, int]
    sizes: list[int]
    masks: list[Tensor] = field(default_factory=list)


class Region:
    """What a mask leaves of `shape`: nothing where it is `empty`; a `box` for all programs; where they differ, `parts`
    of it."""

    def __init__(self, mask: Value | None, shape: Shape) -> None:
        self.shape = shape
        self.box = Box(slice(0, shape[0]), {}, list(shape))
        self.empty = isinstance(mask, int) and not mask
        self.parts: list[Box] | None = None
        masks, ragged = [], None
        for factor in _factors(mask):
            if self._cuts(factor):
                continue
            if ragged is None and isinstance(factor, Below) and self._ends_by_program(factor.gap):
                ragged = factor
            else:
                masks.append(dense(factor, torch.bool, shape))
        if ragged is not None:
            self.parts = None if masks else self._ragged_parts(ragged.gap)
            masks += [dense(ragged, torch.bool, shape)] if self.parts is None else []
        if masks:
            self.parts = self._parts_by(masks)

    # one factor of the mask

    def _cuts(self, factor: Tensor | Below) -> bool:
        """Takes a factor that is true up to one point of one axis, the same for all programs; whether it is such a one."""
        if isinstance(factor, Below):
            axes, turns = self._axes(factor.gap)
            if turns or len(axes) != 1 or axes[0][1] < 0 or not isinstance(factor.gap.base, int):
                return False
            axis, step = axes[0]
            return self._cut_at(axis, _first_not_below(factor.gap.base, step))
        if everywhere(factor):
            return True
        varying = [axis for axis, size in enumerate(factor.shape) if size > 1]
        if len(varying) > 1 or varying == [0]:
            return False
        keep = int(factor.sum())
        if keep and not (varying and everywhere(factor.narrow(varying[0], 0, keep))):
            return False
        return self._cut_at(varying[0] if varying else 0, keep)

    def _cut_at(self, axis: int, keep: int) -> bool:
        if keep <= 0:
            self.empty = True
        else:
            self.box.sizes[axis] = self.box.cut[axis] = min(keep, self.box.sizes[axis])
        return True

    def _axes(self, gap: Affine) -> tuple[list[tuple[int, int]], int]:
        """The tile's axes along which `gap` varies, with its steps, and its step from program to program."""
        axes = [(axis, step) for axis, step in enumerate(gap.steps) if step and axis and self.shape[axis] > 1]
        return axes, gap.steps[0] if self.shape[0] > 1 else 0

    def _ends_by_program(self, gap: Affine) -> bool:
        axes, turns = self._axes(gap)
        return isinstance(gap.base, int) and turns > 0 and len(axes) <= 1 and all(step > 0 for _, step in axes)

    # what differs from program to program

    def _ragged_parts(self, gap: Affine) -> list[Box] | None:
        """Programs up to one are whole, those from another on have nothing, and each between them ends somewhere else;
        None where these are many."""
        axes, turns = self._axes(gap)
        assert isinstance(gap.base, int)
        axis, step = axes[0] if axes else (0, 0)
        cut, sizes = self.box.cut, self.box.sizes
        ends = (_first_not_below(gap.base + reach, turns) for reach in (step * (sizes[axis] - 1), 0))
        whole, some = (min(max(end, 0), sizes[0]) for end in ends)
        if some - whole > MOST_RAGGED:
            return None
        parts = [Box(slice(0, whole), cut, [whole, *sizes[1:]])] if whole else []
        for program in range(whole, some):
            mine = cut | {axis: _first_not_below(gap.base + turns * program, step)}
            parts.append(
                Box(slice(program, program + 1), mine, [1, *(mine.get(a, n) for a, n in enumerate(sizes) if a)])
            )
        return parts

    def _parts_by(self, masks: list[Tensor]) -> list[Box]:
        """The programs that use all of the box, and the rest with masks."""
        cut, sizes = self.box.cut, self.box.sizes
        masks = [_cut(mask, cut) for mask in masks]
        whole = torch.ones(sizes[0], dtype=torch.bool)
        for mask in masks:
            whole &= mask.flatten(1).all(1) if mask.dim() > 1 else mask
        parts = []
        for programs, some in ((whole.nonzero().view(-1), False), ((~whole).nonzero().view(-1), True)):
            if count := programs.numel():
                mine = [narrow(mask, programs) for mask in masks] if some else []
                parts.append(Box(programs, cut, [count, *sizes[1:]], mine))
        return parts


def _first_not_below(start: int, step: int) -> int:
    """The first i where start + step * i is not below zero, for a step above it."""
    return -(start // step)


def _factors(mask: Value | None) -> tuple[Tensor | Below, ...]:
    if isinstance(mask, Conjunction):
        return mask.factors
    return (mask,) if isinstance(mask, Tensor | Below) else ()


def _masks(mask: Value | None, shape: Shape) -> list[Tensor]:
    if isinstance(mask, int) and not mask:
        return [torch.zeros(1, dtype=torch.bool)]
    return [dense(factor, torch.bool, shape) for factor in _factors(mask)]


def _cut(value: Tensor, cut: dict[int, int]) -> Tensor:
    for axis, size in cut.items():
        value = value.narrow(axis, 0, size) if value.shape[axis] > 1 else value
    return value


def _pad(part: Tensor, cut: dict[int, int], other: Tensor, shape: Shape) -> Tensor:
    sizes = [max(a, b) for a, b in zip(part.shape, other.shape, strict=True)]
    for axis in cut:
        sizes[axis] = shape[axis]
    result = torch.empty(sizes, dtype=part.dtype)
    for axis, size in cut.items():
        rest = result.narrow(axis, size, shape[axis] - size)
        rest.copy_(other.narrow(axis, size, shape[axis] - size) if other.shape[axis] > 1 else other)
    _cut(result, cut).copy_(part)
    return result


def _other(other: Value | None, dtype: torch.dtype, shape: Shape) -> Tensor:
    """What masked lanes give: the kernel's `other`, or zero as on NVIDIA's cards, where Triton leaves it undefined."""
    return dense(0 if other is None else other, dtype, shape)


# --- addresses -------------------------------------------------------------------------------------------------------


def _lanes(offset: Integer, box: Box, shape: Shape) -> Affine:
    """The offsets of a box's lanes, of which `offset` has those of `shape`, as an Affine without negative steps, so that
    it can be a strided view."""
    if isinstance(offset, Later) and isinstance(box.programs, slice):
        return _rising(within(offset, box.programs.start, tuple(box.sizes)), box.sizes)
    here = _rising(settled(offset), shape)
    if isinstance(box.programs, Tensor):
        here = narrow(here, box.programs)
    elif box.programs.start or isinstance(here.base, Tensor):
        here = _of_programs(here, box.programs)
    return Affine(_cut(here.base, box.cut), here.steps, 0, 0) if isinstance(here.base, Tensor) else here


def _of_programs(offset: Affine, programs: slice) -> Affine:
    base = offset.base
    if isinstance(base, Tensor) and base.shape[0] > 1:
        base = base[programs]
    return Affine(base + programs.start * offset.steps[0], offset.steps, offset.low, offset.high)


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


def _inside(count: int, offset: Affine, sizes: Shape) -> None:
    low, high = span(offset, sizes)
    if low < 0 or high >= count:
        raise Suspicion("an access out of bounds")


def _apart(offset: Affine, sizes: Shape) -> None:
    """Each lane must have an address of its own axis by axis."""
    base_shape = offset.base.shape if isinstance(offset.base, Tensor) else [1] * len(sizes)
    if any(
        size > 1 and not step and width == 1 for size, step, width in zip(sizes, offset.steps, base_shape, strict=True)
    ):
        raise Suspicion("two lanes write to one element")


def _read(flat: Tensor, offset: Affine, sizes: Shape) -> Tensor:
    """The elements of 1-D `flat` at `offset` over `sizes`, lazily broadcast; a view where the base is one number."""
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
    """Stores `value` (of `sizes`) into 1-D `flat` at `offset`."""
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
