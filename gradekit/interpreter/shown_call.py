"""A call on which changes are looked at: what it was given, what it gave, and what is right."""

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
    """One call: its program and inputs, its results as they were, whether results are right, and what host code was
    called with, where that is known. Where a call is wrong and may stay so, `mended` is whether it is right.

    `compared` has the numbers of the results that are looked at; None for all. Of several copies of the results,
    `may_be` tells at little cost those that cannot be right, and `wrong` counts the elements that are wrong.
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
    """Whether a walk gave what the engine did, but for rounding."""
    return all(_close(mine, other) for mine, other in zip(results, seen, strict=True))


def _close(mine: Tensor | None, seen: Tensor | None) -> bool:
    if not isinstance(seen, Tensor) or not isinstance(mine, Tensor):
        return True
    if mine.shape != seen.shape:
        return False
    return torch.allclose(mine.double(), seen.double(), rtol=1e-2, atol=1e-2, equal_nan=True)
