"""Hypothesis strategies of single tensors, as small specs (see `spec`), for tests without a domain.toml.

Each draws as `calls` does, from a domain of one tensor: nothing is drawn element by element, so that Hypothesis shrinks
a failure to a sentence, "float32 [1, 33], strides (66, 2)", and the simplest comes first in every list.
"""

import functools
import operator
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from gradekit.domain import COMMON_KINDS, EntryDomain, ResultDomain, SizeDomain, Tensor
from gradekit.inputs.calls import calls
from gradekit.inputs.classes import classes
from gradekit.inputs.layouts import LAYOUTS
from gradekit.inputs.spec import FLOATS, Input

Extent = int | tuple[int, int]  # a size, or the inclusive range from which one is drawn


def vectors(*, size: Extent = (1, 5000), **said: Any) -> st.SearchStrategy[Input]:
    """Tensors of one dimension; what else may be said is as in `shaped`."""
    return shaped([size], **said)


def matrices(*, rows: Extent = (1, 200), cols: Extent = (1, 1100), **said: Any) -> st.SearchStrategy[Input]:
    """Tensors of two dimensions; what else may be said is as in `shaped`."""
    return shaped([rows, cols], **said)


def shaped(
    shape: Sequence[Extent],
    *,
    dtypes: Sequence[str] = FLOATS,
    layouts: Sequence[str] = LAYOUTS,
    profiles: Sequence[str] = COMMON_KINDS,
    max_numel: int = 1 << 18,
) -> st.SearchStrategy[Input]:
    """Tensors of exactly `shape`, or with sizes from the ranges that stand in it, often such as 2**k + 1. Later sizes
    are drawn smaller where the whole would have more than `max_numel` elements."""
    ends = [extent if isinstance(extent, tuple) else (extent, extent) for extent in shape]
    ranges = {f"N{place}": extent for place, extent in enumerate(ends)}
    for low, high in ranges.values():
        if not 0 <= low <= high:
            raise ValueError(f"no sizes from {low} to {high}")
    names = [str(dtype).removeprefix("torch.") for dtype in dtypes]
    sizes = {name: SizeDomain(name, high, low) for name, (low, high) in ranges.items()}
    drawn, same = Tensor("x", tuple(ranges), "T"), ResultDomain(tuple(ranges), "T")
    entry = EntryDomain("this strategy", (drawn,), (same,), sizes, {"T": tuple(names)})
    special = {name: [size for one in classes(*extent) for size in one.members] for name, extent in ranges.items()}
    of_sizes = functools.partial(calls, entry, layouts=layouts, values=profiles, how={"at_most": max_numel})
    return st.one_of(of_sizes(sizes=ranges), of_sizes(sizes=special)).map(operator.itemgetter(0))
