"""tt.dot and tt.dot_scaled: matrix products in the precisions that tensor cores have."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gradekit.engine.budget import Unsupported
from gradekit.engine.casts import round_to_tf32
from gradekit.engine.frame import Frame, dtype_of
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


# --- microscaling formats: groups of elements share a power of two ----------------------------------------------------

_E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
_FORMATS = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2, "bf16": torch.bfloat16, "fp16": torch.float16}
"""OCP Microscaling Formats 1.0: e2m1 is listed value by value, the others are torch dtypes."""


@evaluates("tt.dot_scaled")
def _evaluate_dot_scaled(frame: Frame, op: Op) -> Tensor:
    values = [frame.full(op, position) for position in range(len(op.operands))]
    count = max(value.shape[0] for value in values)
    a, b, c, *scales = (value.expand(count, *value.shape[1:]) for value in values)
    has_a, has_b = op.attributes["scaled"]
    a_type, b_type = (_format(op, side) for side in ("a", "b"))
    a = _decoded(a, a_type, -1, bool(op.attributes.get("lhs_k_pack", True)))
    b = _decoded(b, b_type, -2, bool(op.attributes.get("rhs_k_pack", True)))
    if has_a:
        a = a * _spread(scales.pop(0), a.shape[-1])
    if has_b:
        b = b * _spread(scales.pop(0), b.shape[-2]).transpose(-1, -2)
    frame.context.meter.flops += 2 * count * math.prod(op.result_types[0].shape) * a.shape[-1]
    return _multiply_add(a, b, c.float()).to(dtype_of(op.result_types[0]))


def _format(op: Op, side: str) -> str:
    for name in (f"{side}_elem_type", f"{'lhs' if side == 'a' else 'rhs'}"):
        if name in op.attributes:
            return str(op.attributes[name]).strip().lower()
    raise Unsupported("tt.dot_scaled without element types")


def _decoded(value: Tensor, name: str, axis: int, packed_along_k: bool) -> Tensor:
    """Elements of a microscaling format as float32; e2m1 holds two in a byte, the first in the low half."""
    if "e2m1" in name:
        axis = axis if packed_along_k else -3 - axis
        halves = torch.stack([value & 0xF, (value >> 4) & 0xF], -1).to(torch.int64)
        numbers = torch.tensor([*_E2M1, *(-v for v in _E2M1)])[halves]
        return numbers.movedim(-1, axis if axis == -1 else -2).flatten(-2) if axis == -1 else _interleave_rows(numbers)
    for known, dtype in _FORMATS.items():
        if known in name:
            return value.contiguous().view(dtype).float() if value.dtype is not dtype else value.float()
    raise Unsupported(f"tt.dot_scaled with elements {name}")


def _interleave_rows(numbers: Tensor) -> Tensor:
    """[..., rows, columns, 2] to [..., 2 * rows, columns]."""
    moved = numbers.movedim(-1, -2)
    return moved.reshape(*moved.shape[:-3], moved.shape[-3] * 2, moved.shape[-1])


def _spread(scale: Tensor, length: int) -> Tensor:
    """Scales [.., rows, groups] for `length` elements of each row."""
    number = scale.float() if scale.is_floating_point() else _power(scale)  # NVFP4 scales by e4m3 numbers
    return number.repeat_interleave(length // scale.shape[-1], -1)


def _power(scale: Tensor) -> Tensor:
    """The number of a byte in format e8m0: 2**(byte - 127), 255 is NaN."""
    byte = scale.to(torch.int64) & 0xFF
    return torch.where(byte == 255, float("nan"), torch.exp2(byte.double() - 127)).float()
