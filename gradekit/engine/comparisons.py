"""Comparisons of engine integers: decided by their bounds where these suffice, lazy where they are inequalities."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from gradekit.engine.integers import is_nonnegative, tensor
from gradekit.engine.values import (
    INTEGER,
    Affine,
    Below,
    Integer,
    Value,
    add,
    affine,
    against_zero,
    dense,
    moved,
    scale,
    span,
)

Shape = Sequence[int]

_SIGNED: dict[str, Callable[..., Tensor]] = {
    "eq": torch.eq, "ne": torch.ne, "slt": torch.lt, "sle": torch.le, "sgt": torch.gt, "sge": torch.ge,
}  # fmt: skip
_NUMBERS: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq, "ne": operator.ne,
    "slt": operator.lt, "sle": operator.le, "sgt": operator.gt, "sge": operator.ge,
}  # fmt: skip


def cmpi(predicate: str, a: Integer, b: Integer, bits: int, shape: Shape) -> bool | Below | Tensor:
    """Compares as MLIR's predicate says; a bool where bounds decide it for every element."""
    if bits == 1:
        return _compare_bits(predicate, a, b, shape)
    if predicate[0] == "u":
        return _compare_unsigned(predicate, a, b, bits, shape)
    if isinstance(a, int) and isinstance(b, int):
        return _NUMBERS[predicate](a, b)
    if isinstance(a, Affine) or isinstance(b, Affine):
        if isinstance(b, int):
            difference = moved(a, -b)  # type: ignore[arg-type]  # not both are numbers
        else:
            difference = add(affine(a, len(shape)), affine(b, len(shape)), shape, -1)
        if -(1 << 63) < difference.low and difference.high < 1 << 63:  # the smallest int64 has no negative
            return _compare_with_zero(predicate, difference, shape)
    return _SIGNED[predicate](tensor(a, bits, shape), tensor(b, bits, shape))


def _compare_bits(predicate: str, a: Value, b: Value, shape: Shape) -> Tensor:
    x, y = dense(a, torch.bool, shape).to(torch.int8), dense(b, torch.bool, shape).to(torch.int8)
    if predicate in ("slt", "sle", "sgt", "sge"):  # as signed one-bit numbers, true is -1
        x, y = -x, -y
    return _SIGNED[predicate if predicate in _SIGNED else "s" + predicate[1:]](x, y)


def _compare_unsigned(predicate: str, a: Integer, b: Integer, bits: int, shape: Shape) -> bool | Below | Tensor:
    ordered = "s" + predicate[1:]
    if is_nonnegative(a) and is_nonnegative(b):
        return cmpi(ordered, a, b, bits, shape)
    if isinstance(a, int) and isinstance(b, int):
        mask = (1 << bits) - 1
        return _NUMBERS[ordered](a & mask, b & mask)
    top = torch.iinfo(INTEGER[bits]).min
    return _SIGNED[ordered](tensor(a, bits, shape) ^ top, tensor(b, bits, shape) ^ top)


def _compare_with_zero(predicate: str, difference: Affine, shape: Shape) -> bool | Below | Tensor:
    """By its exact ends where they decide for all elements; lazy where it is an inequality."""
    low, high = span(difference, shape)
    at_low, at_high = _NUMBERS[predicate](low, 0), _NUMBERS[predicate](high, 0)
    if predicate in ("eq", "ne"):
        if at_low == at_high and (low > 0 or high < 0 or low == high):
            return at_low
        return against_zero(_SIGNED[predicate], difference, shape)
    if at_low == at_high:
        return at_low
    gap = scale(difference, -1) if predicate[1] == "g" else difference
    return Below(moved(gap, -1) if predicate[2] == "e" else gap)
