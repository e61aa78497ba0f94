"""Kinds of values for boxes: the last dimension holds left, top, right and bottom, in that order.

Real boxes are at least 1 wide and high, and end below 130, or as many times that as they are larger or smaller, or at
the largest coordinates. Where the last dimension is not 4, the values are coordinates, and make no boxes.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from gradekit.inputs.value_kinds import value_kind

JUNK = {torch.float16: 2.0**14}
"""The size of what lies in padding where that is finite, 1e30 elsewhere: the area of such a box is far beyond the
dtype's largest number."""

Profile = Callable[[tuple[int, ...], torch.dtype, torch.Generator], torch.Tensor]


def of_four(make: Profile) -> Profile:
    """`make`, called for a last dimension of 4 alone."""

    def made(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
        return make(shape, dtype, generator) if shape[-1:] == (4,) else _drawn(96, shape, generator)

    return made


@value_kind("boxes")
@of_four
def boxes(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    """Boxes anywhere, in steps of 2**-15; behind the first four in larger ones, up to a million."""
    return _grown(_anywhere(shape, generator), dtype)


@value_kind("boxes_between")
@of_four
def boxes_between(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    """Boxes half a step beside those of `boxes`: in float32 no sides coincide, so that gradients are unique."""
    return _grown(_anywhere(shape, generator) + 2.0**-16, dtype)


@value_kind("boxes_even")
@of_four
def boxes_even(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    """Boxes with even coordinates up to 126, which every dtype holds."""
    return _even(shape, generator)


@value_kind("boxes_odd")
@of_four
def boxes_odd(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    """Boxes with odd coordinates: no side coincides with one of `boxes_even`, so that gradients are unique."""
    return boxes_even(shape, dtype, generator) + 1


@value_kind("boxes_met", parameters=True)
def boxes_met(shape: tuple[int, ...], moved: str, seed: str) -> torch.Tensor:
    """The boxes of `boxes_even` for a seed. Where they are `moved` (1, and not 0), it is some of the four sides, in each
    choice of them one after the other, none first, by 1: outwards, and then right and bottom inwards."""
    values = boxes_even(shape, torch.float64, torch.Generator().manual_seed(int(seed)))
    if shape[-1:] != (4,):
        return values
    number = torch.arange(math.prod(shape[:-1])).reshape(shape[:-1])
    steps = torch.tensor([[-1, -1, 1, 1], [-1, -1, -1, -1]])[number // 16 % 2]
    return values + steps * (number[..., None] >> torch.arange(4) & 1) * int(moved)


@value_kind("boxes_tiny")
@of_four
def boxes_tiny(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    """Boxes with even coordinates, divided by 4096: areas are below 1e-5, and enclosing boxes on either side of it."""
    corner, size = _drawn(8, _pairs(shape), generator), _drawn(3, _pairs(shape), generator) + 1
    return torch.cat([corner, corner + size], dim=-1) / 2048


@value_kind("boxes_tiny_odd")
@of_four
def boxes_tiny_odd(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    """The same with odd coordinates: no side coincides with one of `boxes_tiny`."""
    return boxes_tiny(shape, dtype, generator) + 1 / 4096


@value_kind("boxes_unit")
@of_four
def boxes_unit(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    """Boxes in parts of an image, those of `boxes_even` divided by 128; in float32 on a grid of 2**-22."""
    return (_anywhere if dtype is torch.float32 else _even)(shape, generator) / 128


@value_kind("boxes_unit_odd")
@of_four
def boxes_unit_odd(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    """Others of these, by half a step or 1/128 beside the grid: no side coincides with one of `boxes_unit`."""
    _drawn(2, (1,), generator)  # those of one seed are others
    return boxes_unit(shape, dtype, generator) + (2.0**-23 if dtype is torch.float32 else 2.0**-7)


@value_kind("boxes_left")
@of_four
def boxes_left(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    """Boxes left of 0 and above it, or across, as predictions may be."""
    return _anywhere(shape, generator) - 100


@value_kind("boxes_left_between")
@of_four
def boxes_left_between(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    """Boxes half a step beside those of `boxes_left`; their bottoms are above 0, so that none is padding: every fourth
    one's is the smallest number of the dtype."""
    values, numbers = boxes_left(shape, dtype, generator) + 2.0**-16, torch.finfo(dtype)
    smallest = numbers.smallest_normal * numbers.eps
    values[..., 3] = values[..., 3] + 102  # at least 3: the lowest bottom is 1
    values[..., 3:].masked_fill_(_every_fourth(shape), smallest)
    return values


@value_kind("boxes_flat")
@of_four
def boxes_flat(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    """As `boxes_even`, but about a third have no width, so that their area is 0, and as many next to none; and so with
    their heights: some are points."""
    values = boxes_even(shape, dtype, generator)
    flat = _drawn(3, (*shape[:-1], 2), generator)
    values[..., 2:] = torch.where(flat < 2, values[..., :2] + flat * 2.0**-15, values[..., 2:])
    return values


@value_kind("boxes_padded")
@of_four
def boxes_padded(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    """As `boxes_between`, but about a third are padding: all zeros."""
    real = _drawn(3, (*shape[:-1], 1), generator) > 0
    return boxes_between(shape, dtype, generator) * real


@value_kind("boxes_gaps")
@of_four
def boxes_gaps(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    """As `boxes_between`, but the last of every four is padding, with junk in it, and a bottom below 0."""
    return torch.where(_every_fourth(shape), _junk(shape, dtype), boxes_between(shape, dtype, generator))


@value_kind("boxes_junk")
@of_four
def boxes_junk(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    """As `boxes`, but the last of every four is junk: what a model predicts where `boxes_gaps` has padding."""
    return torch.where(_every_fourth(shape), -_junk(shape, dtype), boxes(shape, dtype, generator))


@value_kind("boxes_none")
@of_four
def boxes_none(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    """Nothing but padding, all of it junk."""
    return _junk(shape, dtype).expand(shape)


def _even(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    corner, size = _drawn(40, _pairs(shape), generator), _drawn(23, _pairs(shape), generator) + 1
    return 2 * torch.cat([corner, corner + size], dim=-1)


def _anywhere(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    corner, size = _drawn(96 << 15, _pairs(shape), generator), _drawn(32 << 15, _pairs(shape), generator) + (1 << 15)
    return torch.cat([corner, corner + size], dim=-1) / (1 << 15)


def _grown(boxes: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The boxes times a power of two, a larger one after every four of them: from 1 to 4096, in float16 to 256. The
    largest are moved to where they end just below the largest coordinate that is promised."""
    steps, end = (8, 65_280) if dtype is torch.float16 else (12, 1_000_000)
    number = torch.arange(math.prod(boxes.shape[:-1])).reshape(*boxes.shape[:-1], 1)
    times = 2.0 ** ((number // 4 % 8) * steps // 7)
    return boxes * times + (times == 2**steps) * (end - 129 * 2**steps)


def _drawn(below: int, shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """Whole numbers from 0 to `below` - 1, in float64."""
    return torch.randint(0, below, shape, generator=generator, dtype=torch.int64).double()


def _pairs(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (*shape[:-1], 2)


def _every_fourth(shape: tuple[int, ...]) -> torch.Tensor:
    return (torch.arange(shape[-2]) % 4 == 3)[:, None] if len(shape) > 1 else torch.tensor(False)


def _junk(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """What may lie in padding: a box far to the right and far below 0, an infinite one, and one of NaN, each for four
    places in turn. The bottom of none is above 0."""
    far = JUNK.get(dtype, 1e30)
    kinds = torch.tensor(
        [[far, far, 3 * far, -2 * far], [math.inf, math.inf, math.inf, -math.inf], [math.nan, math.nan, math.nan, -1.0]],
        dtype=torch.float64,
    )
    return kinds[torch.arange(math.prod(shape[-2:-1])) // 4 % 3].view(*shape[-2:-1], 4)
