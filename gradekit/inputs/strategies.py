"""Hypothesis strategies that draw inputs as small specs (see `spec`).

Runs in the grader's own process and knows nothing of submissions. Nothing is drawn element by element, so Hypothesis
shrinks a failure to a sentence: "float32 [1, 33], strides (66, 2)".

Each strategy draws in the order dtype, shape, layout, values, seed, with the simplest first in every list, so that the
smallest counterexample is float32, small, contiguous, at offset 0 and made of ones, as far as the bug allows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from gradekit.inputs import layouts
from gradekit.inputs.layouts import LAYOUTS, preferring
from gradekit.inputs.spec import FLOATS, Input
from gradekit.inputs.value_kinds import COMMON

Extent = int | tuple[int, int]
"""A size, or the inclusive range from which one is drawn."""


def sizes(low: int = 1, high: int = 1024) -> st.SearchStrategy[int]:
    """Sizes from `low` to `high`, both included; three in four are 2**k, 2**k + 1 or 2**k - 1, each k alike.

    A failing size shrinks to the smallest that fails, not to the smallest boundary.
    """
    octaves = [(0, 0)] if low <= 0 else []
    octaves += [(1 << k, (2 << k) - 1) for k in range(max(high, 0).bit_length())]
    pieces = [(max(a, low), min(b, high)) for a, b in octaves if a <= high and b >= low]
    return st.sampled_from(pieces).flatmap(_in_octave)


def _in_octave(piece: tuple[int, int]) -> st.SearchStrategy[int]:
    # One integer decides all: up to `high` it is the size itself, and what is above falls on an end (on `high` first,
    # so that it keeps its meaning in the octave below). So every size can be reached by making that integer smaller,
    # which is how Hypothesis shrinks.
    low, high = piece
    span = high - low
    ends = (high, low, low + 1)
    return st.integers(low, high + 3 * span).map(lambda n: n if n <= high else ends[(n - high - 1) // span])


def tensors(
    rank: int = 2,
    *,
    dtypes: Sequence[str] = FLOATS,
    size: Extent | Sequence[Extent] = (1, 128),
    layouts: Sequence[str] = LAYOUTS,
    profiles: Sequence[str] = COMMON,
    max_numel: int = 1 << 18,
) -> st.SearchStrategy[Input]:
    """Tensors of `rank` dimensions; `size` is for all of them (a number or an inclusive range) or one for each.

    Later sizes are drawn smaller where the whole would have more than `max_numel` elements.
    """
    return _inputs(_shapes(_ranges(size, rank), max_numel), dtypes, layouts, profiles)


def vectors(
    *,
    dtypes: Sequence[str] = FLOATS,
    size: Extent = (1, 5000),
    layouts: Sequence[str] = LAYOUTS,
    profiles: Sequence[str] = COMMON,
) -> st.SearchStrategy[Input]:
    """Tensors of one dimension."""
    return tensors(1, dtypes=dtypes, size=size, layouts=layouts, profiles=profiles)


def matrices(
    *,
    dtypes: Sequence[str] = FLOATS,
    rows: Extent = (1, 200),
    cols: Extent = (1, 1100),
    layouts: Sequence[str] = LAYOUTS,
    profiles: Sequence[str] = COMMON,
    max_numel: int = 1 << 18,
) -> st.SearchStrategy[Input]:
    """Tensors of two dimensions; fewer columns where `rows` x `cols` would pass `max_numel`."""
    return tensors(2, dtypes=dtypes, size=[rows, cols], layouts=layouts, profiles=profiles, max_numel=max_numel)


def shaped(
    shape: Sequence[int],
    *,
    dtypes: Sequence[str] = FLOATS,
    layouts: Sequence[str] = LAYOUTS,
    profiles: Sequence[str] = COMMON,
) -> st.SearchStrategy[Input]:
    """Tensors of exactly `shape`."""
    return _inputs(st.just(tuple(shape)), dtypes, layouts, profiles)


def _ranges(size: Any, rank: int) -> list[tuple[int, int]]:
    is_one = isinstance(size, int) or (isinstance(size, tuple) and all(type(end) is int for end in size))
    extents = [size] * rank if is_one else list(size)
    if len(extents) != rank:
        raise ValueError(f"{len(extents)} sizes for {rank} dimensions")
    return [_range(extent) for extent in extents]


def _range(extent: Extent) -> tuple[int, int]:
    low, high = extent if isinstance(extent, tuple) else (extent, extent)
    if not 0 <= low <= high:
        raise ValueError(f"no sizes from {low} to {high}")
    return low, high


@st.composite
def _shapes(draw: st.DrawFn, extents: Sequence[tuple[int, int]], max_numel: int) -> tuple[int, ...]:
    shape: list[int] = []
    for low, high in extents:
        room = max_numel // max(math.prod(shape), 1)
        shape.append(draw(sizes(low, max(low, min(high, room)))))
    return tuple(shape)


@st.composite
def _inputs(
    draw: st.DrawFn,
    shapes: st.SearchStrategy[tuple[int, ...]],
    dtypes: Sequence[str],
    layouts: Sequence[str],
    profiles: Sequence[str],
) -> Input:
    dtype = draw(st.sampled_from([str(d).removeprefix("torch.") for d in dtypes]))
    shape = draw(shapes)
    stride, offset = draw(_placements(shape, layouts))
    profile = draw(st.sampled_from(preferring(profiles, "normal")))
    seed = draw(st.integers(0, 9999))
    return Input(dtype, shape, stride, offset, profile, seed)


@st.composite
def _placements(draw: st.DrawFn, shape: tuple[int, ...], names: Sequence[str]) -> layouts.Placement:
    possible = layouts.possible(names, len(shape))
    name = draw(st.sampled_from(preferring(possible, "contiguous")))
    return layouts.place(name, shape, draw(st.sampled_from(range(layouts.variants(name, len(shape))))))
