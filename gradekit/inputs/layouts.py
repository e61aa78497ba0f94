"""Layouts: the ways in which a tensor can lie in its storage, by name.

A layout has variants, counted from 0: how wide a gap is, which dimension is expanded, in which order dimensions are
stored. `place` gives strides and offset, in elements, for a shape, a layout and a variant.
"""

import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Placement = tuple[tuple[int, ...], int]  # strides and offset, in elements

GAPS = (1, 16, 3, 2, 8, 5, 7, 4, 6)
"""Widths of gaps, in elements: 16 keeps the alignment that Triton specializes for, the others break it."""


OFFSETS = (0, 1, 16, 8, 4, 2)  # in elements, each aligned in another way


STEPS = (3, 2, 16, 7)  # strides of stepped vectors: 16 lets Triton specialize a kernel for it, the others do not


PLAIN_TIMES = 3  # so many times as often as any other is the plainest of several options drawn


def preferring(options: Sequence[str], plain: str) -> list[str]:
    """The options in their order, with `plain` as often as it is to be drawn."""
    return [one for one in options for _ in range(PLAIN_TIMES if one == plain and len(options) > 1 else 1)]


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a contiguous tensor of `shape`, as torch gives them."""
    strides = [1]
    for size in reversed(shape[1:]):
        strides.append(strides[-1] * (max(size, 1) if isinstance(size, int) else size.clamp(min=1)))
    return tuple(reversed(strides))[: len(shape)]


def is_row_major(shape: Sequence[int], stride: Sequence[int]) -> bool:
    """Whether the strides are row-major where they matter, that is where a size is not 1."""
    return 0 in shape or all(n == 1 or s == p for n, s, p in zip(shape, stride, row_major(shape), strict=True))


def place(name: str, shape: tuple[int, ...], variant: int = 0) -> Placement:
    """Strides and offset of a tensor of `shape` in the layout `name`; variants beyond the last begin anew. Raises
    ValueError where there is no such layout, or it needs more dimensions."""
    found = _LAYOUTS.get(name)
    if found is None:
        raise ValueError(f"no layout {name!r}; there are {', '.join(LAYOUTS)}")
    if len(shape) < found.rank:
        raise ValueError(f"layout {name!r} needs {found.rank} dimensions, {list(shape)} has {len(shape)}")
    return found.place(shape, variant % found.variants(len(shape)))


def variants(name: str, rank: int) -> int:
    """How many variants the layout has for tensors of so many dimensions; 0 where they are too few for it."""
    found = _LAYOUTS[name]
    return found.variants(rank) if rank >= found.rank else 0


# --- one by one ------------------------------------------------------------------------------------------------------


def _stepped(shape: tuple[int, ...], variant: int) -> Placement:
    if len(shape) == 1:
        return (STEPS[variant],), 0
    wide = [3 * size if dim == variant else size for dim, size in enumerate(shape)]
    return tuple(3 * s if dim == variant else s for dim, s in enumerate(row_major(wide))), 0


def _expanded(shape: tuple[int, ...], variant: int) -> Placement:
    every, is_inner = variant == len(shape), 0 < variant < len(shape) - 1
    stored = shape if is_inner else [1 if dim == variant else size for dim, size in enumerate(shape)]
    return tuple(0 if every or dim == variant else s for dim, s in enumerate(row_major(stored))), 0


def _sliced_columns(shape: tuple[int, ...], variant: int) -> Placement:
    gap = GAPS[variant]
    return row_major((*shape[:-1], shape[-1] + gap)), gap // 2


def _sliced_rows(shape: tuple[int, ...], variant: int) -> Placement:
    gap = GAPS[variant]
    return row_major((*shape[:-2], shape[-2] + gap, shape[-1])), gap * shape[-1]


def _transposed(shape: tuple[int, ...], variant: int) -> Placement:
    rank = len(shape)
    return _ordered(shape, (*range(rank - 2), rank - 1, rank - 2), gap=variant), 0


def _permuted(shape: tuple[int, ...], variant: int) -> Placement:
    orders = _orders(len(shape))
    turn, number = divmod(variant, len(orders))  # each order comes up once before the first does again
    return _ordered(shape, orders[number], gap=(number + turn) % 2), 0


@functools.cache
def _orders(rank: int) -> tuple[tuple[int, ...], ...]:
    """All orders in which so many dimensions can be stored, but the usual one and that of `transposed`."""
    usual = tuple(range(rank))
    swapped = (*usual[:-2], *reversed(usual[-2:]))
    return tuple(order for order in itertools.permutations(usual) if order not in (usual, swapped))


def _ordered(shape: tuple[int, ...], order: tuple[int, ...], gap: int) -> tuple[int, ...]:
    """The strides of dimensions stored in `order`, outermost first, with a gap after each of the innermost."""
    stored = [shape[dim] for dim in order]
    stored[-1] = stored[-1] + gap  # not in place: many sizes at once are a tensor of the caller
    by_dim = dict(zip(order, row_major(stored), strict=True))
    return tuple(by_dim[dim] for dim in range(len(shape)))


# --- all of them -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Layout:
    """`rank` is the fewest dimensions that it makes sense for, `variants` how many it has for a rank."""

    place: Callable[[tuple[int, ...], int], Placement]
    rank: int
    variants: Callable[[int], int] = lambda rank: 1


_LAYOUTS = {
    "contiguous": _Layout(lambda shape, variant: (row_major(shape), 0), 0),
    # contiguous, but so many elements into its storage
    "offset": _Layout(lambda shape, variant: (row_major(shape), OFFSETS[variant]), 0, lambda rank: len(OFFSETS)),
    "transposed": _Layout(_transposed, 2, lambda rank: 2),  # x.mT, dense or with gaps
    "permuted": _Layout(_permuted, 3, lambda rank: 2 * len(_orders(rank))),  # any other order, dense or with gaps
    "sliced_columns": _Layout(_sliced_columns, 2, lambda rank: len(GAPS)),  # x[:, a:b]
    "sliced_rows": _Layout(_sliced_rows, 2, lambda rank: len(GAPS)),  # x[a:, :]
    "every_second": _Layout(lambda shape, variant: (tuple(2 * s for s in row_major(shape)), 0), 1),  # x[..., ::2]
    # every third of a dimension that is not the last; of a vector, every third, second, 16th or 7th element
    "stepped": _Layout(_stepped, 1, lambda rank: rank - 1 if rank > 1 else len(STEPS)),
    # x.expand(...): one dimension has stride 0 (an inner one beside strides of a contiguous tensor), or
    # all have, as the gradient of x.sum()
    "expanded": _Layout(_expanded, 1, lambda rank: rank + 1 if rank > 1 else 1),
}
CONTIGUOUS, OFFSET, PERMUTED, TRANSPOSED, EXPANDED = "contiguous", "offset", "permuted", "transposed", "expanded"
BY_RANK = frozenset({PERMUTED, "stepped", EXPANDED})  # those whose variants are about one dimension or another
LAYOUTS = tuple(_LAYOUTS)
"""The names of all layouts, simplest first; those that need more dimensions leave themselves out."""


_MERGED = {1: {"every_second": "stepped"}, 2: {"sliced_rows": OFFSET, "stepped": "sliced_columns"}}


def told_apart(names: Sequence[str], rank: int) -> tuple[str, ...]:
    """Those of the layouts that are no case of another: contiguous is an offset of 0."""
    like = {CONTIGUOUS: OFFSET, **_MERGED.get(rank, {"sliced_rows": "stepped"})}
    return tuple(one for one in names if like.get(one) not in names)
