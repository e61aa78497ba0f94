"""What a call returned, known by its content: two results with the same digest are the same, whoever computed them.

In a class, right kernels give the same bits for the same inputs again and again. So what was found out about a content
holds wherever it comes up, and need not even be there: `Results` are made when somebody looks at them.

Runs in the grader's process.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, overload

import torch

from gradekit.compat.torch import changes


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
    """The results of a call in order: `made` by a function when somebody looks at them, and then kept.

    `values` has of each the Content of a tensor, or the value of anything else.
    """

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
