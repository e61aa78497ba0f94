"""Addresses of many lanes at once: offsets that are Affine in the tile become strided views of a storage.

No index is made for each element unless the lanes are scattered. Raises `Suspicion` for what only `checked` can judge.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from gradekit.engine.masks import Box, cut_to
from gradekit.engine.memory import strided
from gradekit.engine.values import Affine, Integer, Unmade, materialize, narrow, span

Shape = Sequence[int]


class Suspicion(Exception):
    """Something that only the checked memory can judge: the reason is for the engine's own log."""


def offsets_of(offset: Integer, box: Box, shape: Shape) -> Affine:
    """The offsets of a box's lanes, of which `offset` has those of `shape`, as an Affine without negative steps,
    so that it can be a strided view."""
    here = rising(offset, shape)
    if isinstance(box.programs, Tensor):
        here = narrow(here, box.programs)
    elif box.programs.start or isinstance(here.base, Tensor):
        here = _of_programs(here, box.programs)
    return Affine(cut_to(here.base, box.cut), here.steps, 0, 0) if isinstance(here.base, Tensor) else here


def _of_programs(offset: Affine, programs: slice) -> Affine:
    base = offset.base
    if isinstance(base, Tensor) and base.shape[0] > 1:
        base = base[programs]
    return Affine(base + programs.start * offset.steps[0], offset.steps, offset.low, offset.high)


def rising(offset: int | Affine | Tensor, shape: Shape) -> Affine:
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


def active_positions(offset: Affine, masks: list[Tensor], shape: Shape) -> tuple[Tensor, Tensor]:
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


def check_bounds(count: int, offset: Affine, sizes: Shape) -> None:
    """Raises Suspicion where a lane is not among the elements 0..count-1."""
    low, high = span(offset, sizes)
    if low < 0 or high >= count:
        raise Suspicion("an access out of bounds")


def check_apart(offset: Affine, sizes: Shape) -> None:
    """Each lane must have an address of its own axis by axis."""
    base_shape = offset.base.shape if isinstance(offset.base, Tensor) else [1] * len(sizes)
    if any(
        size > 1 and not step and width == 1 for size, step, width in zip(sizes, offset.steps, base_shape, strict=True)
    ):
        raise Suspicion("two lanes write to one element")


def read_lanes(flat: Tensor, offset: Affine, sizes: Shape) -> Tensor:
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


def write_lanes(flat: Tensor, offset: Affine, sizes: Shape, value: Tensor | Unmade) -> None:
    """Stores `value` (of `sizes`, or broadcast to them) into 1-D `flat` at `offset`."""
    if isinstance(offset.base, int):
        _copy_into(strided(flat, sizes, offset.steps, offset.base), value)
        return
    windows, positions, axes = _window(flat, offset, sizes)
    outer = [axis for axis in range(len(sizes)) if axis not in axes]
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
