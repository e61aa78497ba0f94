"""Masks as rectangles: which part of a tile is active, for all programs at once or program by program.

Most masks cut a tile at one point of one axis. Where a mask is such a cut, the active lanes are a box, and memory can
be read and written as a strided view without an index for each lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from gradekit.engine.memory import everywhere
from gradekit.engine.values import Affine, Below, Conjunction, Value, dense, narrow

Shape = Sequence[int]

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

    def of(self, value: Tensor) -> Tensor:
        """What a lazily broadcast tensor has for these lanes."""
        here = cut_to(value, self.cut)
        return here if here.shape[0] == 1 else here[self.programs]


class MaskPartition:
    """The active lanes of `shape` under a mask: none where it is `empty`, one `box` for all programs, or `parts` of
    that box where programs differ."""

    def __init__(self, mask: Value | None, shape: Shape) -> None:
        self.shape = shape
        self.box = Box(slice(0, shape[0]), {}, list(shape))
        self.empty = isinstance(mask, int) and not mask
        self.parts: list[Box] | None = None
        masks, ragged = [], None
        for factor in mask_factors(mask):
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
        """Takes a factor that is true up to one point of one axis, the same for all
        programs; whether it is such a one."""
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
        """The programs that use all of the box, and the rest with masks; where these are most, all are."""
        cut, sizes = self.box.cut, self.box.sizes
        masks = [cut_to(mask, cut) for mask in masks]
        whole = torch.ones(sizes[0], dtype=torch.bool)
        for mask in masks:
            whole &= mask.flatten(1).all(1) if mask.dim() > 1 else mask
        if 2 * int(whole.sum()) < sizes[0]:
            return [Box(slice(0, sizes[0]), cut, sizes, masks)]
        parts = []
        for programs, some in ((whole.nonzero().view(-1), False), ((~whole).nonzero().view(-1), True)):
            if count := programs.numel():
                mine = [narrow(mask, programs) for mask in masks] if some else []
                parts.append(Box(programs, cut, [count, *sizes[1:]], mine))
        return parts


def _first_not_below(start: int, step: int) -> int:
    """The first i where start + step * i is not below zero, for a step above it."""
    return -(start // step)


def mask_factors(mask: Value | None) -> tuple[Tensor | Below, ...]:
    """The masks whose conjunction `mask` is."""
    if isinstance(mask, Conjunction):
        return mask.factors
    return (mask,) if isinstance(mask, Tensor | Below) else ()


def dense_masks(mask: Value | None, shape: Shape) -> list[Tensor]:
    """The factors of a mask as bool tensors, lazily broadcast; none where all lanes are active."""
    if isinstance(mask, int) and not mask:
        return [torch.zeros(1, dtype=torch.bool)]
    return [dense(factor, torch.bool, shape) for factor in mask_factors(mask)]


def cut_to(value: Tensor, cut: dict[int, int]) -> Tensor:
    """`value` up to the points of `cut`, along the axes where it varies."""
    for axis, size in cut.items():
        value = value.narrow(axis, 0, size) if value.shape[axis] > 1 else value
    return value


def padded(part: Tensor, cut: dict[int, int], other: Tensor, shape: Shape) -> Tensor:
    """`part`, which ends at the points of `cut`, continued to `shape` with what `other` has there."""
    sizes = [max(a, b) for a, b in zip(part.shape, other.shape, strict=True)]
    for axis in cut:
        sizes[axis] = shape[axis]
    result = part.new_empty(sizes)
    for axis, size in cut.items():
        rest = result.narrow(axis, size, shape[axis] - size)
        rest.copy_(other.narrow(axis, size, shape[axis] - size) if other.shape[axis] > 1 else other)
    cut_to(result, cut).copy_(part)
    return result
