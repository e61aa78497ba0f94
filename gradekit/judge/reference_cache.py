"""References that an earlier submission needed already: one seed gives every student the same inputs.

A reference is asked for by a function of the assignment's tests and by input specs; the same function of the same specs
has the same result. A test's file is imported anew for each submission, so no two functions are the same object: they
are compared by their code, their file and what they close over. What cannot be compared is not cached.

Works in the grader's process; see gradekit.reuse for how long it keeps anything.
"""

from __future__ import annotations

import os
import types
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import torch

from gradekit.inputs.spec import Input, sharing
from gradekit.judge.contents import versions
from gradekit.reuse import LruCache

LARGEST, MOST_BYTES = 1 << 20, 64 << 20
"""Limits: bytes of one reference, bytes of all."""

_SCALARS = (int, float, str, bytes, type(None), torch.dtype)


class _NotComparable(Exception):
    """An argument that cannot be compared with another call's."""


def reference_key(function: Any, args: Sequence[Any], *options: Any) -> Hashable | None:
    """Equal for calls with equal results; None where that cannot be said, as with a tensor, which may have changed."""
    try:
        return (_comparable(function), tuple(map(_comparable, args)), sharing(args), tuple(map(_comparable, options)))
    except (_NotComparable, RecursionError, ValueError):  # a function that refers to itself; a name not bound yet
        return None


def _comparable(value: Any) -> Hashable:
    """`value` such that equality means equality: 1, 1.0 and True are three values."""
    if isinstance(value, Input):
        return value
    if isinstance(value, _SCALARS):
        return (type(value), repr(value) if isinstance(value, float) else value)
    if isinstance(value, tuple):
        return tuple(map(_comparable, value))
    if isinstance(value, types.FunctionType):
        return _function(value)
    if isinstance(value, types.BuiltinFunctionType):
        return value
    raise _NotComparable


def _function(function: types.FunctionType) -> Hashable:
    """Its code, its file as it stands, its defaults, attributes and closure."""
    if function.__kwdefaults__:
        raise _NotComparable
    attributes = tuple(vars(function).items())
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    file = function.__code__.co_filename
    try:
        stat = os.stat(file)
    except OSError:
        raise _NotComparable from None
    return (
        function.__code__,
        file,
        stat.st_mtime_ns,
        stat.st_size,
        _comparable(function.__defaults__),
        _comparable(attributes),
        *map(_comparable, cells),
    )


class TensorCache:
    """An LRU cache of values that hold tensors; a value whose tensors somebody has written to is made again.

    `tensors` lists those of a value: their bytes are its weight, and torch's version
    counters tell whether they changed.
    """

    def __init__(self, tensors: Callable[[Any], list[torch.Tensor]]) -> None:
        self._tensors = tensors
        self._entries: LruCache[Hashable, tuple[Any, list[int]]] = LruCache(MOST_BYTES, self._bytes, LARGEST)

    def get_or_make(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """The value of `key`: the cached one, or else what `make()` gives."""
        entry = self._entries.get(key)
        if entry is not None and versions(self._tensors(entry[0])) == entry[1]:
            return entry[0]
        made = make()
        self._entries.put(key, (made, versions(self._tensors(made))))
        return made

    def _bytes(self, entry: tuple[Any, list[int]]) -> int:
        return sum(tensor.untyped_storage().nbytes() for tensor in self._tensors(entry[0]))
