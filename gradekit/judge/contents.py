"""What a call returned, known by its content: two results with the same digest are the same, whoever computed them.

In a class, right kernels give the same bits for the same inputs again and again. `Results` need not even be there: they
are made when somebody looks at them. References are known by what was asked: functions by their code, their file and
what they close over, for a test's file is imported anew for each submission; what cannot be compared is not cached.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import types
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple, overload

import torch

from gradekit.compat.torch import changes
from gradekit.inputs.spec import Input, sharing
from gradekit.reuse import LruCache, is_keeping


class Content(NamedTuple):
    """A tensor by its bits, dtype, shape and strides (`digest`), and the bytes that its elements take."""

    digest: bytes
    nbytes: int


def content(tensor: torch.Tensor) -> Content:
    """That of a CPU tensor."""
    plain = tensor.detach().contiguous()
    nbytes = plain.numel() * plain.element_size()
    hashed = hashlib.sha256(repr((tensor.dtype, tuple(tensor.shape), tensor.stride())).encode())
    if nbytes:
        hashed.update((ctypes.c_char * nbytes).from_address(plain.data_ptr()))
    return Content(hashed.digest(), nbytes)


def versions(tensors: Iterable[torch.Tensor]) -> list[int]:
    """Others once one of the tensors has been changed, by whoever they were handed to."""
    return [changes(tensor) for tensor in tensors]


class Results(Sequence[Any]):
    """The results of a call in order: `made` by a function when somebody looks at them, and then kept. `values` has of
    each the Content of a tensor, or the value of anything else."""

    def __init__(self, values: Sequence[Any], make: Callable[[], Sequence[Any]]) -> None:
        self._values = tuple(values)
        self._make = make
        self._made: list[Any] | None = None
        self._versions: list[int] = []

    def __len__(self) -> int:
        return len(self._values)

    @overload
    def __getitem__(self, place: int) -> Any: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Any]: ...
    def __getitem__(self, place: int | slice) -> Any:
        if self._made is None:
            self._made = list(self._make())
            self._versions = versions(self._tensors)
        return self._made[place]

    @property
    def contents(self) -> tuple[bytes, ...] | None:
        """The digests; None where not all are tensors, or one has been changed by whoever looked at it."""
        if not all(isinstance(value, Content) for value in self._values):
            return None
        if versions(self._tensors) != self._versions:
            return None
        return tuple(value.digest for value in self._values)

    @property
    def nbytes(self) -> int:
        """What the elements of all tensors take, made or not."""
        return sum(value.nbytes for value in self._values if isinstance(value, Content))

    def only(self, number: int) -> Results:
        """One of them alone."""
        return Results(self._values[number : number + 1], lambda: self[number : number + 1])

    @property
    def _tensors(self) -> list[torch.Tensor]:
        return [value for value in self._made or () if isinstance(value, torch.Tensor)]


def nbytes(results: Sequence[Any]) -> int:
    """What the elements of all tensors among `results` take; they need not be made for it."""
    if isinstance(results, Results):
        return results.nbytes
    return sum(value.numel() * value.element_size() for value in results if isinstance(value, torch.Tensor))


LARGEST, MOST_BYTES = 1 << 20, 64 << 20
"""Limits: bytes of one reference, and of all that the submissions of a process share: the next check of one seldom has
the inputs of another, and is left a quarter."""

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
    if isinstance(value, (Input, types.BuiltinFunctionType)):
        return value
    if isinstance(value, _SCALARS):
        return (type(value), repr(value) if isinstance(value, float) else value)
    if isinstance(value, tuple):
        return tuple(map(_comparable, value))
    if isinstance(value, types.FunctionType):
        return _function(value)
    raise _NotComparable


def _function(function: types.FunctionType) -> Hashable:
    if function.__kwdefaults__:
        raise _NotComparable
    attributes = tuple(vars(function).items())
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    file = function.__code__.co_filename
    try:
        stat = os.stat(file)
    except OSError:
        raise _NotComparable from None
    parts = map(_comparable, (function.__defaults__, attributes, *cells))
    return (function.__code__, file, stat.st_mtime_ns, stat.st_size, *parts)


class TensorCache:
    """An LRU cache of values that hold tensors; a value whose tensors somebody has written to is made again. `tensors`
    lists those of a value: their bytes are its weight, and torch's version counters tell whether they changed."""

    def __init__(self, tensors: Callable[[Any], list[torch.Tensor]]) -> None:
        self._tensors = tensors
        most = MOST_BYTES if is_keeping() else MOST_BYTES // 4
        self._entries: LruCache[Hashable, tuple[Any, list[int]]] = LruCache(most, self._bytes, LARGEST)

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
