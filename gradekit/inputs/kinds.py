"""Kinds of values that go together: lengths within a cache, the rows and columns of a sparse matrix.

Runs in the grader's processes, on any machine, and knows nothing of specs. Such a kind is a word with parameters, such
as "lengths:300:7"; all that its values depend on stands in it, a seed too, so that two tensors that must agree (the
row pointers and the column numbers of one matrix) are made apart and do.

    lengths:MOST:SEED               whole numbers from 1 to MOST, MOST itself often, or always where SEED is -1
    cut:MOST:SEED:OWN               [B, H, S, D]: seed OWN, and NaN from position `lengths:MOST:SEED` of each b on
    crow:ROWS:COLS:PATTERN:SEED     [ROWS + 1]: where each row of a CSR matrix begins in `col`; PATTERN is in PATTERNS
    col:ROWS:COLS:PATTERN:SEED      the column of each element: ascending in each row, none twice
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import torch
from torch import Tensor

# --- lengths ---------------------------------------------------------------------------------------------------------


def lengths(count: int, most: int, seed: int) -> Tensor:
    """`count` lengths from 1 to `most`, int64; a quarter of them are `most`, one of the first two is; all if seed < 0."""
    if seed < 0:
        return torch.full((count,), most)
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randint(1, most + 1, (count,), generator=generator)
    whole = torch.randint(0, 4, (count,), generator=generator) == 0
    whole[seed % min(count, 2) if count else slice(0)] = True
    return drawn.masked_fill(whole, most)


def _lengths(shape: tuple[int, ...], most: str, seed: str) -> Tensor:
    return lengths(math.prod(shape), int(most), int(seed)).reshape(shape)


def _cut(shape: tuple[int, ...], most: str, seed: str, own: str) -> Tensor:
    generator = torch.Generator().manual_seed(int(own))
    values = torch.randint(-4096, 4097, shape, generator=generator).double() / 2048
    ends = lengths(shape[0], int(most), int(seed))[:, None, None, None]
    return values.masked_fill(torch.arange(shape[2])[:, None] >= ends, math.nan)


# --- sparse matrices -------------------------------------------------------------------------------------------------


def _even(rows: int, cols: int, generator: torch.Generator) -> Tensor:
    return torch.full((rows,), max(1, cols // 4))


def _ragged(rows: int, cols: int, generator: torch.Generator) -> Tensor:
    octave = torch.randint(0, max(cols, 1).bit_length() + 1, (rows,), generator=generator)
    return ((1 << octave) // 2).clamp(max=cols)  # none, 1, 2, 4 and so on, each as often


def _one_long(rows: int, cols: int, generator: torch.Generator) -> Tensor:
    counts = torch.randint(0, 2, (rows,), generator=generator).clamp(max=cols)
    counts[torch.randint(0, rows, (1,), generator=generator)] = cols
    return counts


def _few(rows: int, cols: int, generator: torch.Generator) -> Tensor:
    return torch.randint(0, 33, (rows,), generator=generator).clamp(max=cols)


def _full(rows: int, cols: int, generator: torch.Generator) -> Tensor:
    return torch.full((rows,), cols)


def _none(rows: int, cols: int, generator: torch.Generator) -> Tensor:
    return torch.zeros(rows, dtype=torch.int64)


PATTERNS: dict[str, Callable[[int, int, torch.Generator], Tensor]] = {
    "even": _even,  # a quarter of the columns in every row
    "ragged": _ragged,  # rows without an element, with one, two, four, up to all
    "one_long": _one_long,  # one row is full, of the others each has one element or none
    "few": _few,  # up to 32 in each row, however many columns there are: what a large matrix has
    "full": _full,
    "none": _none,  # not a single element
}
"""How many elements each row has: functions of (rows, columns, generator)."""


@functools.lru_cache(maxsize=64)
def row_starts(rows: int, cols: int, pattern: str, seed: int) -> Tensor:
    """Where each of `rows` rows begins, and where the last one ends: int64 [rows + 1]; treat it as read-only."""
    counts = PATTERNS[pattern](rows, cols, torch.Generator().manual_seed(seed))
    return torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)])


def _crow(shape: tuple[int, ...], rows: str, cols: str, pattern: str, seed: str) -> Tensor:
    return row_starts(int(rows), int(cols), pattern, int(seed)).reshape(shape)


def _col(shape: tuple[int, ...], rows: str, cols: str, pattern: str, seed: str) -> Tensor:
    counts = row_starts(int(rows), int(cols), pattern, int(seed)).diff().tolist()
    generator = torch.Generator().manual_seed(int(seed) + 1)
    parts = [_some(count, int(cols), generator) for count in counts]
    return torch.cat([torch.zeros(0, dtype=torch.int64), *parts]).reshape(shape)


def _some(count: int, of: int, generator: torch.Generator) -> Tensor:
    """`count` different numbers below `of`, ascending: one from each of `count` equal stretches where they are few."""
    if count == of:
        return torch.arange(of)
    if 2 * count > of:
        return torch.randperm(of, generator=generator)[:count].sort().values
    width = of // max(count, 1)
    return torch.arange(count) * width + torch.randint(0, width, (count,), generator=generator)


# --- all of them -----------------------------------------------------------------------------------------------------

KINDS: dict[str, Callable[..., Tensor]] = {"lengths": _lengths, "cut": _cut, "crow": _crow, "col": _col}
"""Makers by the word before the first colon: functions of the shape and the parameters, as text."""


def is_kind(profile: str) -> bool:
    """Whether `profile` is one of these, and not a plain kind of values."""
    return profile.partition(":")[0] in KINDS


def make(profile: str, shape: tuple[int, ...]) -> Tensor:
    """The values of `profile` for a tensor of `shape`, on the CPU, int64 or float64.

    Raises:
        ValueError: parameters that do not fit the kind or the shape.
    """
    word, *parameters = profile.split(":")
    try:
        return KINDS[word](shape, *parameters)
    except (TypeError, ValueError, KeyError, RuntimeError, IndexError) as error:
        raise ValueError(f"no values {profile!r} for shape {list(shape)} ({error})") from None
