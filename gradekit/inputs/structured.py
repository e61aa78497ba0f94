"""Hypothesis strategies for inputs that belong together: lengths with the caches that they cut, sparse matrices.

Runs in the grader's own process. What they draw are specs like all others (`strategies.Input`), with a kind of values
that has parameters (`kinds`): a failing case shrinks to few rows, few columns and the simplest pattern.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from hypothesis import strategies as st

from gradekit.inputs import kinds
from gradekit.inputs.strategies import COMMON, FLOATS, Extent, Input, row_major, shaped, sizes

ONE_BY_ONE = ("contiguous", "offset", "every_second")
"""Layouts in which each index has an element of its own, for vectors whose elements must be what they are."""


class Csr(NamedTuple):
    """A sparse matrix [rows, cols] in compressed rows: row r has elements crow[r] to crow[r + 1] of `values`."""

    crow: Input
    col: Input
    values: Input
    rows: int
    cols: int


@st.composite
def csr_matrices(
    draw: st.DrawFn,
    *,
    dtypes: Sequence[str] = FLOATS,
    rows: Extent = (1, 60),
    cols: Extent = (1, 300),
    patterns: Sequence[str] = tuple(kinds.PATTERNS),
    layouts: Sequence[str] = ("contiguous",),
    profiles: Sequence[str] = COMMON,
) -> Csr:
    """Sparse matrices, some with empty rows, with one long row, with nothing at all."""
    height, width = draw(sizes(*_range(rows))), draw(sizes(*_range(cols)))
    pattern, seed = draw(st.sampled_from(patterns)), draw(st.integers(0, 99))
    one_by_one = tuple(layout for layout in layouts if layout in ONE_BY_ONE)
    count = int(kinds.row_starts(height, width, pattern, seed)[-1])
    same = f"{height}:{width}:{pattern}:{seed}"
    crow = draw(_integers((height + 1,), f"crow:{same}", one_by_one))
    col = draw(_integers((count,), f"col:{same}", one_by_one))
    values = draw(shaped((count,), dtypes=dtypes, layouts=layouts, profiles=profiles))
    return Csr(crow, col, values, height, width)


def csr(rows: int, cols: int, pattern: str, *, dtype: str = "float32", seed: int = 0, profile: str = "normal") -> Csr:
    """One sparse matrix, contiguous: for a test that must have just this one."""
    count = int(kinds.row_starts(rows, cols, pattern, seed)[-1])
    same = f"{rows}:{cols}:{pattern}:{seed}"
    crow, col = (_plain("int32", (n,), f"{word}:{same}", 0) for n, word in ((rows + 1, "crow"), (count, "col")))
    return Csr(crow, col, _plain(dtype, (count,), profile, seed), rows, cols)


def lengths(
    count: int, most: int, *, layouts: Sequence[str] = ("contiguous",), all_whole: bool = False
) -> st.SearchStrategy[Input]:
    """int32 [count]: lengths from 1 to `most`, or all of them `most`; their kind of values has their seed (see `cut`)."""
    chosen = tuple(layout for layout in layouts if layout in ONE_BY_ONE)
    seeds = st.just(-1) if all_whole else st.integers(0, 99)
    return seeds.flatmap(lambda seed: _integers((count,), f"lengths:{most}:{seed}", chosen))


def cut(cache: Input, lengths: Input) -> Input:
    """`cache` [B, H, S, D] with NaN in all positions that lie past the `lengths` [B], and other values before them."""
    return replace(cache, profile=f"cut:{lengths.profile.partition(':')[2]}:{cache.seed}")


def _integers(shape: tuple[int, ...], profile: str, layouts: Sequence[str]) -> st.SearchStrategy[Input]:
    def of(placed: Input) -> Input:
        return Input("int32", shape, placed.stride, placed.offset, profile)

    return shaped(shape, dtypes=["int32"], layouts=layouts, profiles=["ones"]).map(of)


def _plain(dtype: str, shape: tuple[int, ...], profile: str, seed: int) -> Input:
    return Input(dtype, shape, row_major(shape), 0, profile, seed)


def _range(extent: Extent) -> tuple[int, int]:
    return extent if isinstance(extent, tuple) else (extent, extent)
