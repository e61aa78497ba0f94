"""Kinds of values for a sparse matrix in compressed rows: where its rows begin, and the column of each element.

All that the values depend on stands in the kind's name, a seed too, so that both tensors are made apart and agree.

    crow:ROWS:COLS:PATTERN:SEED     [ROWS + 1]: where each row begins in `col`; PATTERN is in PATTERNS, or the lengths of
                                    rows, such as 96;97;0, which go on in turn
    col:ROWS:COLS:PATTERN:SEED      the column of each element: ascending in each row, none twice
"""

import functools
import itertools

import torch

from gradekit.inputs.spec import Input, row_major
from gradekit.inputs.value_kinds import make, value_kind


def even(rows, cols, generator):
    return torch.full((rows,), max(1, cols // 4))


def ragged(rows, cols, generator):
    octave = torch.randint(0, max(cols, 1).bit_length() + 1, (rows,), generator=generator)
    return ((1 << octave) // 2).clamp(max=cols)  # none, 1, 2, 4 and so on, each as often


def one_long(rows, cols, generator):
    counts = torch.randint(0, 2, (rows,), generator=generator).clamp(max=cols)
    counts[torch.randint(0, rows, (1,), generator=generator)] = cols
    return counts


def few(rows, cols, generator):
    return torch.randint(0, 33, (rows,), generator=generator).clamp(max=cols)


def full(rows, cols, generator):
    return torch.full((rows,), cols)


def stairs(rows, cols, generator):
    return torch.arange(rows).clamp(max=cols)


def alone(rows, cols, generator):
    counts = torch.zeros(rows, dtype=torch.int64)
    counts[torch.randint(0, rows, (1,), generator=generator)] = min(rows - 1, cols)
    return counts


def none(rows, cols, generator):
    return torch.zeros(rows, dtype=torch.int64)


PATTERNS = {
    "even": even,  # a quarter of the columns in every row
    "ragged": ragged,  # rows without an element, with one, two, four, up to all
    "one_long": one_long,  # one row is full, of the others each has one element or none
    "few": few,  # up to 32 in each row, however many columns there are: what a large matrix has
    "full": full,
    "stairs": stairs,  # in each row one more than in the row before, from none on: whatever length a kernel makes special
    "alone": alone,  # one row has all the elements, and they are fewer than the rows
    "none": none,  # not a single element
}
"""How many elements each row has: functions of (rows, columns, generator)."""


@functools.lru_cache(maxsize=64)
def row_starts(rows, cols, pattern, seed):
    """Where each of `rows` rows begins, and where the last one ends: int64 [rows + 1]; treat it as read-only."""
    make_counts = PATTERNS.get(pattern) or (lambda *_: torch.tensor([*map(int, pattern.split(";"))] * rows)[:rows])
    counts = make_counts(rows, cols, torch.Generator().manual_seed(seed))
    return torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)])


@value_kind("crow", parameters=True)
def of_crow(shape, rows, cols, pattern, seed):
    return row_starts(int(rows), int(cols), pattern, int(seed)).reshape(shape)


@value_kind("col", parameters=True)
def of_col(shape, rows, cols, pattern, seed):
    counts = row_starts(int(rows), int(cols), pattern, int(seed)).diff().tolist()
    generator = torch.Generator().manual_seed(int(seed) + 1)
    alike = itertools.groupby(count for count in counts if count)
    parts = [some(count, int(cols), len([*same]), generator) for count, same in alike]
    return torch.cat([torch.zeros(0, dtype=torch.int64), *parts]).reshape(shape)


@value_kind("zero_runs")
def zero_runs(shape, dtype, generator):
    """As `normal`, but for stretches of zeros, of 1 to 300 elements, with as many between them."""
    values = make("normal", shape, dtype, generator).clone()
    lengths = (300 ** torch.rand(max(len(values), 1), generator=generator)).int()
    run = torch.searchsorted(lengths.cumsum(0), torch.arange(len(values)), right=True)
    values[run % 2 == 0] = 0
    return values


def some(count, of, rows, generator):
    """For each of `rows` rows, `count` different numbers below `of`, ascending: one from each of `count` equal stretches
    where they are few."""
    if count == of:
        return torch.arange(of).repeat(rows)
    if 2 * count > of:
        return torch.cat([torch.randperm(of, generator=generator)[:count].sort().values for _ in range(rows)])
    width = of // count
    return (torch.arange(count) * width).repeat(rows) + torch.randint(0, width, (rows * count,), generator=generator)


def csr(rows, cols, pattern, dtype="float32", seed=0, profile="normal"):
    """crow, col and values of one sparse matrix, contiguous."""
    count = int(row_starts(rows, cols, pattern, seed)[-1])
    same = f"{rows}:{cols}:{pattern}:{seed}"
    crow, col = (Input("int32", (n,), (1,), 0, f"{word}:{same}") for n, word in ((rows + 1, "crow"), (count, "col")))
    return crow, col, Input(dtype, (count,), row_major((count,)), 0, profile, seed)
