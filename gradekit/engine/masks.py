"""Masks as rectangles: which part of a tile is active.

Most masks cut a tile at one point of one axis, or the tiles of programs that follow each other at one point of all
their lanes in a row. There memory can be read and written as a strided view without an index for each lane.
"""

import functools
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from gradekit.engine.memory import everywhere
from gradekit.engine.values import Affine, Below, Integer, Value, dense, mask_factors

Shape = Sequence[int]


class Box:
    """The active lanes of `shape` under a mask: none where it is `empty`; of all programs, up to a point along the axes
    that are `cut`; `sizes` in all, and the `masks` that decide inside of it; the first `row` in row-major order."""

    def __init__(self, mask: Value | None, shape: Shape) -> None:
        self.shape = shape
        self.cut: dict[int, int] = {}
        self.sizes = list(shape)
        self.empty = isinstance(mask, int) and not mask
        self._deciding = [factor for factor in mask_factors(mask) if not self._cuts(factor)]
        ends = first_of(mask.gap, shape) if self._deciding and isinstance(mask, Below) else None
        self.row = None if ends is None else min(max(-ends, 0), math.prod(shape))  # of programs that are left, perhaps

    @functools.cached_property
    def masks(self) -> list[Tensor]:
        """See the class."""
        return [cut_to(dense(factor, torch.bool, self.shape), self.cut) for factor in self._deciding]

    def _cuts(self, factor: Tensor | Below) -> bool:
        """Takes a factor that is true up to a point of one axis for all programs, or throughout; whether it is one."""
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
            self.sizes[axis] = self.cut[axis] = min(keep, self.sizes[axis])
        return True


def first_of(offset: Integer, shape: Shape) -> int | None:
    """The first of the elements of `offset` over `shape`, where they are known to be consecutive."""
    if isinstance(offset, int):
        return offset if math.prod(shape) == 1 else None
    if not isinstance(offset, Affine) or (isinstance(offset.base, Tensor) and offset.base.numel() > 1):
        return None
    expected = 1
    for step, size in zip(reversed(offset.steps), reversed(shape), strict=True):
        if size > 1 and step != expected:
            return None
        expected *= size
    return int(offset.base)


def cut_to(value: Tensor, cut: dict[int, int]) -> Tensor:
    """`value` up to the points of `cut`, along the axes where it varies."""
    for axis, size in cut.items():
        value = value.narrow(axis, 0, size) if value.shape[axis] > 1 else value
    return value


def padded(part: Tensor, cut: dict[int, int], other: Tensor, shape: Shape, whole: Tensor | None = None) -> Tensor:
    """`part`, which ends at `cut`, continued to `shape` by `other`; in `whole`, the uncut tensor, if it is given."""
    widths = enumerate(zip(part.shape, other.shape, strict=True))
    sizes = [shape[axis] if axis in cut else max(both) for axis, both in widths]
    inner = result = part.new_empty(sizes) if whole is None else whole
    for axis, size in cut.items():
        rest = inner.narrow(axis, size, shape[axis] - size)
        rest.copy_(other.narrow(axis, size, shape[axis] - size) if other.shape[axis] > 1 else other)
        inner, other = cut_to(inner, {axis: size}), cut_to(other, {axis: size})
    if whole is None:
        inner.copy_(part)
    return result
