"""The strides that torch gives to `empty_like` and its kin, worked out here.

torch itself would ask sympy for tensors without data, whose import takes as long as grading a small submission.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch


def empty_like(tensor: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
    """A new tensor without data, of the same shape and, where it can be, the same strides."""
    strides = like(tensor.shape, tensor.stride())
    return torch.empty_strided(tensor.shape, strides, dtype=dtype or tensor.dtype, device="meta")


def like(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, ...]:
    """The strides of a tensor made like one of this geometry: kept where it has neither gaps nor overlaps; else
    dense, with the dimensions in the same order in memory."""
    return tuple(strides) if is_dense(shape, strides) else _dense(shape, _order(shape, strides))


def is_dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether the elements fill their part of memory without gaps or overlaps."""
    expected = 1
    for stride, size in sorted((stride, size) for size, stride in zip(shape, strides, strict=True) if size > 1):
        if stride != expected:
            return False
        expected *= size
    return True


def _dense(shape: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    strides, step = [0] * len(shape), 1
    for dimension in order:
        strides[dimension] = step
        step *= max(shape[dimension], 1)
    return tuple(strides)


def _order(shape: Sequence[int], strides: Sequence[int]) -> list[int]:
    """The dimensions from the one that varies fastest in memory, as torch sorts them: by insertion, with those of
    stride 0 comparing equal to all others."""
    order = list(reversed(range(len(shape))))
    for start in range(1, len(order)):
        moving = start
        for other in range(start - 1, -1, -1):
            verdict = _compare(order[other], order[moving], shape, strides)
            if verdict < 0:
                break
            if verdict > 0:
                order[other], order[moving] = order[moving], order[other]
                moving = other
    return order


def _compare(first: int, second: int, shape: Sequence[int], strides: Sequence[int]) -> int:
    if strides[first] == 0 or strides[second] == 0:
        return 0
    if strides[first] != strides[second]:
        return 1 if strides[first] > strides[second] else -1
    return 1 if shape[first] > shape[second] else 0
