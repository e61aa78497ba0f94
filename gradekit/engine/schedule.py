"""Which programs of a grid are evaluated together, and in which order."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator

from gradekit.engine.liveness import peak_bytes
from gradekit.engine.ttir import Module, Op, Region, parse

LANES = 1 << 19
"""Elements of the largest tile that are evaluated together: enough to hide torch's cost per call, few enough for L2."""

LIVE_BYTES = 1 << 27
"""Bytes of tiles that programs evaluated together may hold at a time."""


@functools.lru_cache(maxsize=512)
def parsed(ttir: str) -> Module:
    """The module of a TTIR text; raises TTIRError."""
    return parse(ttir)


def chunks(grid: tuple[int, int, int], size: int) -> Iterator[tuple[int, int]]:
    """Runs of consecutive linear program ids: (first, count), inside one row of the grid where the row is long."""
    width, total = grid[0], math.prod(grid)
    if width >= size:
        for row in range(0, total, width):
            yield from ((row + x, min(size, width - x)) for x in range(0, width, size))
        return
    size = max(size // max(width, 1), 1) * width
    yield from ((first, min(size, total - first)) for first in range(0, total, size))


@functools.lru_cache(maxsize=512)
def programs_at_once(ttir: str) -> int:
    """How many programs of a kernel are evaluated together; one at a time where programs may wait for each other."""
    module = parsed(ttir)
    operations = [op for function in module.functions.values() for op in _operations(function.body)]
    if any(op.name == "tt.atomic_cas" or (op.name == "scf.while" and _has_atomics(op)) for op in operations):
        return 1
    tile = max((math.prod(type.shape) for op in operations for type in op.result_types), default=1)
    return max(min(LANES // tile, LIVE_BYTES // max(peak(ttir), 1)), 1)


@functools.lru_cache(maxsize=512)
def peak(ttir: str) -> int:
    """The most bytes of tiles that one program of a kernel holds at a time, functions that it calls included."""
    return sum(peak_bytes(function.body) for function in parsed(ttir).functions.values())


def _has_atomics(op: Op) -> bool:
    return any(inner.name.startswith("tt.atomic") for region in op.regions for inner in _operations(region))


def _operations(region: Region) -> Iterator[Op]:
    for block in region.blocks:
        for op in block.ops:
            yield op
            for inner in op.regions:
                yield from _operations(inner)
