"""What masks of loads and stores leave of whole tiles: all of one, nothing of one, or a part, for some program.

Noted beside the branch coverage, under the number of the load or store. Once all three are known of an operation, or it
was looked at often enough in a launch, it costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gradekit.engine.masks import mask_factors
from gradekit.engine.values import Affine, Below, Value

if TYPE_CHECKING:
    from gradekit.engine.frame import Frame
    from gradekit.engine.ttir import Op

WHOLE, NOTHING, PART = 1, 2, 4
MASKED = ("tt.load", "tt.store")
"""The operations whose masks are noted."""

MOST_LOOKS = 4
"""Times that one operation is looked at in a launch."""


def ways_of(op: Op) -> tuple[int, ...]:
    """What the mask of a load or store may leave of a tile: nothing in between, where it has one element."""
    type = op.result_types[0] if op.result_types else op.operand_types[1]
    return (WHOLE, NOTHING, PART) if math.prod(type.shape) > 1 else (WHOLE, NOTHING)


def note_mask(frame: Frame, op: Op, mask: Value, shape: tuple[int, ...]) -> None:
    """A load or store of tiles, `shape` with the programs first, has this mask."""
    context, key = frame.context, (frame.context.launch, op.number)
    known, looks = context.ways.get(key, 0), context.looks.get(op.number, 0)
    if known != WHOLE | NOTHING | PART and looks < MOST_LOOKS:
        context.looks[op.number] = looks + 1
        if context.last_mask[0] is not mask or context.last_mask[1] != shape:  # often several operations have one mask
            context.last_mask = mask, shape, left_of_tiles(mask, shape)
        context.ways[key] = known | context.last_mask[2]


def left_of_tiles(mask: Value, shape: Sequence[int]) -> int:
    """What a mask leaves of the programs' tiles, added up; 0 where that is not seen at little cost."""
    if isinstance(mask, int):
        return WHOLE if mask else NOTHING
    factors = mask_factors(mask)
    if not factors or not math.prod(shape):
        return 0
    if all(isinstance(factor, Below) and isinstance(factor.gap.base, int) for factor in factors):
        return _of_numbers([factor.gap for factor in factors if isinstance(factor, Below)], shape)
    whole, nothing = torch.ones(1, dtype=torch.bool), torch.zeros(1, dtype=torch.bool)
    for factor in factors:
        every, none = _by_program(factor, shape)
        whole, nothing = whole & every, nothing | none
    return _added(bool(whole.any()), bool(nothing.any()), not bool((whole | nothing).all()))


def _added(whole: bool, nothing: bool, part: bool) -> int:
    return WHOLE * whole | NOTHING * nothing | PART * part


def _reach(gap: Affine, shape: Sequence[int]) -> tuple[int, int]:
    """How far the gap's steps along the tile's axes lead, downwards and upwards."""
    ends = [step * (size - 1) for step, size in zip(gap.steps[1:], shape[1:], strict=True)]
    return sum(end for end in ends if end < 0), sum(end for end in ends if end > 0)


def _of_numbers(gaps: Sequence[Affine], shape: Sequence[int]) -> int:
    """Of factors that are true where a gap of numbers alone is below zero: all of them change at few programs."""
    ends = []
    for gap in gaps:
        down, up = _reach(gap, shape)
        ends.append((int(gap.base) + down, int(gap.base) + up, gap.steps[0]))
    found = 0
    for program in {0, *(p for one in ends for p in _changes(*one) if 0 < p < shape[0])}:
        whole = all(most + turn * program < 0 for _, most, turn in ends)
        nothing = any(least + turn * program >= 0 for least, _, turn in ends)
        found |= _added(whole, nothing, not whole and not nothing)
    return found


def _changes(least: int, most: int, turn: int) -> Iterator[int]:
    """The programs from which on a gap that changes by `turn` has another sign, or none of them."""
    for start in (least, most):
        if turn > 0:
            yield -(start // turn)
        elif turn < 0:
            yield start // -turn + 1


def _by_program(factor: Tensor | Below, shape: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Whether a factor is true, and whether it is false, for the whole tile of each program."""
    if isinstance(factor, Tensor):
        flat = factor.flatten(1) if factor.dim() > 1 else factor.view(-1, 1)
        return flat.all(1), ~flat.any(1)
    gap, (down, up) = factor.gap, _reach(factor.gap, shape)
    base = gap.base if isinstance(gap.base, Tensor) else torch.tensor([gap.base])
    base = base + gap.steps[0] * torch.arange(shape[0]).view(-1, *[1] * (base.dim() - 1)) if gap.steps[0] else base
    if base.numel() == base.shape[0]:
        most = least = base.view(-1)
    else:
        least, most = base.flatten(1).aminmax(dim=1)
    return most < -up, least >= -down
