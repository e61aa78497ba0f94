"""What a mask leaves of the programs' tiles is told from its form as from its elements."""

from __future__ import annotations

import itertools
import random

import pytest
import torch

from gradekit.engine.branch_coverage import NOTHING, PART, WHOLE, left_of_tiles
from gradekit.engine.masks import MaskPartition
from gradekit.engine.values import Affine, Below, Conjunction, dense

SHAPE = (5, 4, 8)


def below(base: int, steps: tuple[int, int, int], by_program: bool) -> Below:
    """The factor, with what it has from program to program as a step or in a tensor."""
    turn = torch.arange(SHAPE[0]).view(-1, 1, 1) * steps[0]
    inner = [step * (size - 1) for step, size in zip(steps, SHAPE, strict=True)]
    low, high = base + sum(min(i, 0) for i in inner), base + sum(max(i, 0) for i in inner)
    gap = Affine(base + turn, (0, *steps[1:]), low, high) if by_program else Affine(base, steps, low, high)
    return Below(gap)


def told(masks: list[torch.Tensor]) -> int:
    """By looking at every element of every program's tile."""
    every = torch.ones(SHAPE, dtype=torch.bool)
    for mask in masks:
        every &= mask
    counts = every.flatten(1).sum(1)
    size = SHAPE[1] * SHAPE[2]
    found = (WHOLE, counts == size), (NOTHING, counts == 0), (PART, (counts > 0) & (counts < size))
    return sum(way for way, where in found if bool(where.any()))


@pytest.mark.parametrize("by_program", [False, True])
def test_it_is_what_the_elements_say(by_program: bool) -> None:
    draw, seen = random.Random(3), set()
    for _ in range(300):
        rows = below(draw.randint(-24, 12), (draw.choice([-8, -4, 0, 1, 4]), draw.choice([0, 1, 2]), 0), by_program)
        columns = below(draw.randint(-12, 6), (0, 0, draw.choice([0, 1, 3])), False)
        for factors in ((rows,), (columns,), (rows, columns)):
            tensors = [dense(factor, torch.bool, SHAPE) for factor in factors]
            said = left_of_tiles(MaskPartition(Conjunction(factors), SHAPE))
            assert said == told(tensors), factors
            assert left_of_tiles(MaskPartition(Conjunction(tuple(tensors)), SHAPE)) == said
            seen.add(said)
    assert seen >= {WHOLE, NOTHING, PART, WHOLE | PART, NOTHING | PART, WHOLE | NOTHING | PART}


def test_a_mask_that_is_one_value_leaves_all_or_nothing() -> None:
    assert [left_of_tiles(MaskPartition(mask, SHAPE)) for mask in (True, False)] == [WHOLE, NOTHING]


def test_masks_of_single_elements_have_no_part() -> None:
    for bits in itertools.product([False, True], repeat=3):
        mask = torch.tensor(bits)
        assert left_of_tiles(MaskPartition(mask, (3,))) == WHOLE * any(bits) + NOTHING * (not all(bits))
