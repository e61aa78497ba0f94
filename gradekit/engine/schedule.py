"""Which programs of a grid are evaluated together, and in which order."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from gradekit.engine.conditions import Order
from gradekit.engine.kernel_facts import KernelFacts
from gradekit.engine.values import Affine

LANES = 1 << 19
"""Elements of the largest tile that are evaluated together: enough to hide torch's cost per call, few enough for L2."""

LIVE_BYTES = 1 << 27
"""Bytes of tiles that programs evaluated together may hold at a time."""

SHUFFLED = 1 << 16
"""The most programs that are shuffled; those of a larger grid run in reverse order."""


def chunks(grid: tuple[int, int, int], size: int, order: Order = Order.ASCENDING) -> Iterator[tuple[Any, int]]:
    """The linear ids of programs that run together, with how many there are; in ascending order, inside one row of the
    grid where the row is long."""
    total = math.prod(grid)
    if order is Order.SHUFFLED and total <= SHUFFLED:
        ids = torch.randperm(total, generator=torch.Generator().manual_seed(total))
        yield from ((part, part.numel()) for part in ids.split(size))
        return
    for first, count in _runs(grid, size):
        yield (ascending(first, count) if order is Order.ASCENDING else _descending(total - 1 - first, count)), count


def ascending(first: int, count: int) -> int | Affine:
    """The ids first..first+count-1 along the program axis."""
    return first if count == 1 else Affine(first, (1,), first, first + count - 1)


def _descending(first: int, count: int) -> int | Affine:
    return first if count == 1 else Affine(first, (-1,), first - count + 1, first)


def _runs(grid: tuple[int, int, int], size: int) -> Iterator[tuple[int, int]]:
    width, total = grid[0], math.prod(grid)
    if width >= size:
        for row in range(0, total, width):
            yield from ((row + x, min(size, width - x)) for x in range(0, width, size))
        return
    size = max(size // max(width, 1), 1) * width
    yield from ((first, min(size, total - first)) for first in range(0, total, size))


def programs_at_once(kernel: KernelFacts) -> int:
    """How many programs of a kernel are evaluated together; one at a time where they may wait for each other, and never
    one alone where atomics order them: what lies between the atomics of two programs shows only if they overlap. Where
    they read what others write meanwhile, they come one by one, for together all take their branches in one order."""
    if kernel.waits or kernel.volatile:
        return 1
    return max(programs_that_fit(kernel), 2 if kernel.ordered else 1)


def programs_that_fit(kernel: KernelFacts) -> int:
    """How many programs of a kernel can be evaluated together, by the size of their tiles; 0 where none can."""
    return min(LANES // kernel.tile, LIVE_BYTES // max(kernel.peak, 1))
