"""Calls within an assignment's domain that tell sizes apart: what host code is followed with, in place of examples."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gradekit.domain import ANY_DIMENSIONS, EntryDomain, ResultDomain, ScalarDomain, Tensor, evaluate
from gradekit.program import Argument, Scalar, View

PRIMES = (301, 37, 53, 91, 19, 11, 7, 5, 3, 2)
"""Sizes, each for one dimension; in falling order, and all but the last odd."""

GAP = 3
"""Elements between rows of a tensor that is not contiguous."""

MOST_RANKS = 2


def calls_of(entry: EntryDomain, dtypes: int = 1, gradient: bool = False) -> list[tuple[Argument, ...]]:
    """Calls of the entry: of each kind of scalars and number of dimensions, contiguous ones and ones with any strides.

    With `gradient`, the gradient of the result is the last argument.
    """
    found = []
    choices = [entry.dtypes[name][:dtypes] for name in entry.dtypes]
    for dtype in itertools.product(*choices):
        for rank, strided in itertools.product(_ranks(entry), (False, True)):
            for scalars in itertools.product(*map(_values, entry.scalars)):
                names = dict(zip(entry.dtypes, dtype, strict=True)), _sizes(entry, rank)
                found.append(tuple(_call(entry, names, scalars, strided, gradient)))
    return found


def names_of(entry: EntryDomain, gradient: bool = False) -> list[str]:
    """What the arguments of such a call are called."""
    return [argument.name for argument in entry.arguments] + (["the gradient of the result"] if gradient else [])


def _ranks(entry: EntryDomain) -> list[int]:
    unnamed = entry.sizes.get(ANY_DIMENSIONS)
    if unnamed is None:
        return [0]
    return sorted({unnamed.dims[0], min(unnamed.dims[1], MOST_RANKS)})


def _values(scalar: ScalarDomain) -> Sequence[Any]:
    return scalar.values if scalar.type == "bool" else scalar.values[:1]


def _sizes(entry: EntryDomain, rank: int) -> dict[str, int]:
    """A size of its own for each dimension, within its range; those without a name are called 0, 1 and so on."""
    left = list(PRIMES)
    found: dict[str, int] = {}
    wanted = [*((name, size) for name, size in entry.sizes.items() if name != ANY_DIMENSIONS)]
    wanted += [(str(axis), entry.sizes[ANY_DIMENSIONS]) for axis in range(rank)]
    for name, size in wanted:
        if size.only:
            found[name] = size.only[-1]
            continue
        most = min(size.most, max(size.drawn, size.least) or size.most)
        found[name] = next((n for n in left if max(size.least, 2) <= n <= most), max(size.least, 1))
        left = [n for n in left if n != found[name]]
    return found


def _call(entry: EntryDomain, names: tuple[dict[str, str], dict[str, int]], scalars: Sequence[Any], strided: bool,
          gradient: bool) -> Iterator[Argument]:  # fmt: skip
    given = iter(scalars)
    tensors: list[Tensor | ResultDomain] = [*entry.tensors, *(entry.results[:1] if gradient else [])]
    position = itertools.count()
    for argument in [*entry.arguments, *tensors[len(entry.tensors) :]]:
        if isinstance(argument, ScalarDomain):
            value = next(given)
            yield Scalar(evaluate(value, names[1]) if isinstance(value, str) else value)
        else:
            upstream = isinstance(argument, ResultDomain)
            yield _view(next(position), argument, names, strided and not upstream)


def _view(
    storage: int, tensor: Tensor | ResultDomain, names: tuple[dict[str, str], dict[str, int]], strided: bool
) -> View:
    dtypes, sizes = names
    shape: list[int] = []
    for part in tensor.shape:
        unnamed = [sizes[name] for name in sizes if name.isdecimal()]
        shape += unnamed if part == ANY_DIMENSIONS else [int(evaluate(part, sizes))]
    return View(storage, dtypes.get(tensor.dtype, tensor.dtype), tuple(shape), _strides(shape, strided))


def _strides(shape: Sequence[int], strided: bool) -> tuple[int, ...]:
    strides, step = [], 2 if strided else 1
    for size in reversed(shape):
        strides.append(step)
        step = step * size + (GAP if strided else 0)
    return tuple(reversed(strides))


def sizes_of(values: Mapping[str, int]) -> str:
    """Sizes as a sentence names them: "M = 65,537, N = 2"."""
    return ", ".join(f"{name} = {value:,}" for name, value in values.items())
