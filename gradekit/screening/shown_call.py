"""A call on which changes are looked at: what it was given, what it gave, and what is right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gradekit.program import Program
from gradekit.screening.host_call import HostCall

IsRight = Callable[[Sequence[Tensor | None]], bool]


@dataclass(frozen=True)
class ShownCall:
    """One call: its program and inputs, its results as they were, whether results are right, how many elements of them
    are wrong, and what host code was called with, where that is known. Where a call is wrong and may stay so, `mended`
    is whether it is right."""

    program: Program
    inputs: Sequence[Tensor]
    results: Sequence[Tensor | None]
    is_right: IsRight
    wrong: Callable[[Sequence[Tensor | None]], int] | None = None
    host: HostCall | None = None
    mended: IsRight | None = None


def is_like(results: Sequence[Tensor | None], seen: Sequence[Tensor | None]) -> bool:
    """Whether a walk gave what the engine did, but for rounding."""
    return all(_close(mine, other) for mine, other in zip(results, seen, strict=True))


def _close(mine: Tensor | None, seen: Tensor | None) -> bool:
    if not isinstance(seen, Tensor) or not isinstance(mine, Tensor):
        return True
    if mine.shape != seen.shape:
        return False
    return torch.allclose(mine.double(), seen.double(), rtol=1e-2, atol=1e-2, equal_nan=True)
