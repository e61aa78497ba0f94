"""Conversions between number formats as NVIDIA's hardware makes them."""

from __future__ import annotations

import torch
from torch import Tensor

from gradekit.engine.values import INTEGER

SATURATING = {torch.float8_e4m3fn: 448.0, torch.float8_e5m2: 57344.0}
"""Formats whose conversion instruction saturates (PTX cvt.satfinite), with their largest finite number."""


def float_to_float(value: Tensor, target: torch.dtype, toward_zero: bool = False) -> Tensor:
    """Rounds to nearest even (or toward zero) in `target`; float8 saturates, NaN stays NaN."""
    limit = SATURATING.get(target)
    wide = value.float() if value.dtype.itemsize < 4 and limit else value
    rounded = (wide.clamp(-limit, limit) if limit else wide).to(target)
    return _toward_zero(value, rounded) if toward_zero else rounded


def _toward_zero(value: Tensor, rounded: Tensor) -> Tensor:
    """One step back where rounding went away from zero: formats are ordered like their bits."""
    bits = rounded.view(INTEGER[8 * rounded.dtype.itemsize])
    over = rounded.to(torch.float64).abs() > value.to(torch.float64).abs()
    return (bits - over.to(bits.dtype)).view(rounded.dtype)


def float_to_signed(value: Tensor, bits: int) -> Tensor:
    """Toward zero, saturating at 32 or 64 bits, NaN to 0 (PTX cvt.rzi); narrower results keep the low bits."""
    width = 64 if bits == 64 else 32
    wide = torch.nan_to_num(value.double(), nan=0.0, posinf=float("inf"), neginf=float("-inf")).trunc()
    limit = 2.0 ** (width - 1)
    number = wide.clamp(-limit, limit - 1 if width == 32 else 2.0**63 - 1024).to(torch.int64)
    if width == 64:
        number = torch.where(wide >= limit, torch.iinfo(torch.int64).max, number)
    return number.to(INTEGER[max(bits, 8)]) if bits > 1 else number.to(torch.bool)


def float_to_unsigned(value: Tensor, bits: int) -> Tensor:
    """Toward zero, saturating at 0 and 2**32 - 1 or 2**64 - 1; narrower results keep the low bits."""
    if bits == 1:
        return value.double().trunc() != 0
    wide = torch.nan_to_num(value.double(), nan=0.0, posinf=float("inf"), neginf=0.0).trunc().clamp(min=0.0)
    if bits < 64:
        return wide.clamp(max=2.0**32 - 1).to(torch.int64).to(INTEGER[bits])
    high = (wide >= 2.0**63).to(torch.int64)
    number = (wide - high * 2.0**63).clamp(max=2.0**63 - 1024).to(torch.int64)
    result = number + high * torch.iinfo(torch.int64).min
    return torch.where(wide >= 2.0**64, -1, result)


def round_to_tf32(value: Tensor) -> Tensor:
    """float32 with the 10 mantissa bits that tensor cores read: the lower 13 are dropped."""
    return (value.contiguous().view(torch.int32) & ~0x1FFF).view(torch.float32)
