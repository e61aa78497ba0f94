"""tt.dot: matrix products in the precisions that tensor cores have."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gradekit.engine.casts import round_to_tf32
from gradekit.engine.frame import Frame
from gradekit.engine.registry import evaluates

if TYPE_CHECKING:
    from gradekit.engine.ttir import Op


@evaluates("tt.dot")
def _evaluate_dot(frame: Frame, op: Op) -> Tensor:
    """a [M, K] @ b [K, N] + c [M, N], or with a batch axis before; products exact, sums in the accumulator's type."""
    a, b, c = (frame.full(op, position) for position in range(3))
    count = max(value.shape[0] for value in (a, b, c))
    frame.context.meter.flops += 2 * count * math.prod(op.result_types[0].shape) * a.shape[-1]
    precision = str(op.attributes.get("inputPrecision", "ieee")).lower()
    a, b, c = (value.expand(count, *value.shape[1:]) for value in (a, b, c))
    return product(a, b, c, precision)


def product(a: Tensor, b: Tensor, c: Tensor, precision: str = "ieee") -> Tensor:
    """a @ b + c in c's dtype, over equal leading axes."""
    if c.dtype is torch.int32:  # at most 2**14 a product, exact in float64 for any K that fits in memory
        return c + torch.matmul(a.double(), b.double()).to(torch.int64).to(torch.int32)
    if c.dtype is torch.float64:
        return _multiply_add(a.double(), b.double(), c)
    if a.dtype is torch.float32 and precision == "bf16x3":
        return _in_bf16_parts(a, b, c)
    if a.dtype is torch.float32 and precision == "tf32":
        a, b = round_to_tf32(a), round_to_tf32(b)
    return _multiply_add(a.float(), b.float(), c.float()).to(c.dtype)


def _multiply_add(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    if a.dim() == 3:
        return torch.baddbmm(c, a, b)
    return c + torch.matmul(a, b)


def _in_bf16_parts(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """Each operand as a bfloat16 and the bfloat16 of what is left; the product of the two rests is dropped."""
    a_high, b_high = a.bfloat16().float(), b.bfloat16().float()
    a_low, b_low = (a - a_high).bfloat16().float(), (b - b_high).bfloat16().float()
    small = _multiply_add(a_high, b_low, _multiply_add(a_low, b_high, torch.zeros_like(c)))
    return _multiply_add(a_high, b_high, c) + small
