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
from gradekit.engine.values import Below, Value, dense, mask_factors

Shape = Sequence[int]


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
        masks = [dense(factor, torch.bool, shape) for factor in mask_factors(mask) if not self._cuts(factor)]
        if masks:
            self.parts = self._parts_by(masks)

    # one factor of the mask

    def _cuts(self, factor: Tensor | Below) -> bool:
        """Takes a factor that is true up to one point of one axis, the same for all programs, as its form tells, or
        that is true throughout; whether it is such a one."""
        if isinstance(factor, Tensor):
            return everywhere(factor)
        steps = [(axis, step) for axis, step in enumerate(factor.gap.steps) if step and self.shape[axis] > 1]
        axes = [(axis, step) for axis, step in steps if axis]
        if axes != steps or len(axes) != 1 or axes[0][1] < 0 or not isinstance(factor.gap.base, int):
            return False
        axis, step = axes[0]
        keep = -(factor.gap.base // step)  # the first that is not below zero
        if keep <= 0:
            self.empty = True
        else:
            self.box.sizes[axis] = self.box.cut[axis] = min(keep, self.box.sizes[axis])
        return True

    # what differs from program to program

    def _parts_by(self, masks: list[Tensor]) -> list[Box]:
        """The programs that use all of the box, and the rest with masks; where these are most, all are."""
        cut, sizes = self.box.cut, self.box.sizes
        masks = [cut_to(mask, cut) for mask in masks]
        whole = torch.ones(sizes[0], dtype=torch.bool)
        for mask in masks:
            whole &= mask.flatten(1).all(1) if mask.dim() > 1 else mask
        first = int(whole.sum())
        if 2 * first < sizes[0]:
            return [Box(slice(0, sizes[0]), cut, sizes, masks)]
        if everywhere(whole[:first]):
            groups: list[slice | Tensor] = [slice(0, first), slice(first, sizes[0])]
        else:
            groups = [whole.nonzero().view(-1), (~whole).nonzero().view(-1)]
        inside = [mask if mask.shape[0] == 1 else mask[groups[1]] for mask in masks]
        boxes = (Box(groups[0], cut, [first, *sizes[1:]]), Box(groups[1], cut, [sizes[0] - first, *sizes[1:]], inside))
        return [box for box in boxes if box.sizes[0]]


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


def padded(part: Tensor, cut: dict[int, int], other: Tensor, shape: Shape, whole: Tensor | None = None) -> Tensor:
    """`part`, which ends at the points of `cut`, continued to `shape` with what `other` has there; in `whole`, where
    that is the tensor that has been cut and nobody else needs it."""
    sizes = [max(a, b) for a, b in zip(part.shape, other.shape, strict=True)]
    for axis in cut:
        sizes[axis] = shape[axis]
    result = part.new_empty(sizes) if whole is None else whole
    for axis, size in cut.items():
        rest = result.narrow(axis, size, shape[axis] - size)
        rest.copy_(other.narrow(axis, size, shape[axis] - size) if other.shape[axis] > 1 else other)
    if whole is None:
        cut_to(result, cut).copy_(part)
    return result
