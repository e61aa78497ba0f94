"""A call on which changes are tried: what it was given, what it gave, and what is right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gradekit.interpreter.host_call import HostCall
from gradekit.program import Program

IsRight = Callable[[Sequence[Tensor | None]], bool]

OfEach = Callable[[Sequence[Tensor | None]], Tensor]
"""Something of each of several copies of the results, which come first among the dimensions of each result."""


@dataclass(frozen=True)
class ShownCall:
    """One call on which changes are tried.

    Attributes:
        program: as it was traced.
        inputs: its tensors.
        results: as they were.
        is_right: whether results are right; where the call may stay as wrong as it was, whether they are no worse.
        wrong: of several copies of the results, how many elements of each are wrong.
        host: what host code was called with, where that is known.
        mended: whether results are right, where `is_right` lets the call stay wrong.
        may_be: of several copies of the results, which may be right: it costs little, and leaves out most.
        compared: the numbers of the results that are compared; None for all.
    """

    program: Program
    inputs: Sequence[Tensor]
    results: Sequence[Tensor | None]
    is_right: IsRight
    wrong: OfEach | None = None
    host: HostCall | None = None
    mended: IsRight | None = None
    may_be: OfEach | None = None
    compared: tuple[int, ...] | None = None


def is_like(results: Sequence[Tensor | None], seen: Sequence[Tensor | None]) -> bool:
    """Whether results are those that were seen, but for rounding."""
    return len(results) == len(seen) and all(map(_close, results, seen))


def _close(mine: Tensor | None, seen: Tensor | None) -> bool:
    if not isinstance(seen, Tensor) or not isinstance(mine, Tensor):
        return True
    if mine.shape != seen.shape:
        return False
    return torch.allclose(mine.double(), seen.double(), rtol=1e-2, atol=1e-2, equal_nan=True)
