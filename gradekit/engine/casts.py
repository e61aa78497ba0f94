"""Conversions between number formats as NVIDIA's hardware makes them."""

import torch
from torch import Tensor

from gradekit.engine.values import INTEGER, UNSIGNED

SATURATING = {torch.float8_e4m3fn: 448.0, torch.float8_e5m2: 57344.0}
"""Formats whose conversion instruction saturates (PTX cvt.satfinite), with their largest finite number."""


def float_to_float(value: Tensor, target: torch.dtype, toward_zero: bool = False) -> Tensor:
    """Rounds to nearest even (or toward zero) in `target`; float8 saturates, NaN stays NaN, the same in 16 bits."""
    limit = SATURATING.get(target)
    wide = value.float() if value.dtype.itemsize < 4 and limit else value
    rounded = (wide.clamp(-limit, limit) if limit else wide).to(target)
    if target.itemsize == 2 and bool(rounded.sum().isnan()):  # a first look, in a fifth of the time
        rounded.view(torch.int16).masked_fill_(rounded.isnan(), 0x7FFF)
    return _toward_zero(value, rounded) if toward_zero else rounded


def _toward_zero(value: Tensor, rounded: Tensor) -> Tensor:
    """One step back where rounding went away from zero: formats are ordered like their bits."""
    bits = rounded.view(INTEGER[8 * rounded.dtype.itemsize])
    over = rounded.to(torch.float64).abs() > value.to(torch.float64).abs()
    return (bits - over.to(bits.dtype)).view(rounded.dtype)


def float_to_signed(value: Tensor, bits: int) -> Tensor:
    """Toward zero, saturating at the instruction's width, NaN to 0 (PTX cvt.rzi.s16, .s32, .s64)."""
    limit, wide = 2.0 ** (max(bits, 16) - 1), _whole(value)  # no instruction makes a byte: it remains of 16 bits
    if bits == 1:
        return value.double().trunc() != 0
    number = wide.clamp(-limit, _below(limit)).to(torch.int64)
    return torch.where(wide >= limit, int(limit) - 1, number).to(INTEGER[bits])


def float_to_unsigned(value: Tensor, bits: int) -> Tensor:
    """Toward zero, saturating at 0 and at the instruction's width, NaN to 0 (PTX cvt.rzi.u16, .u32, .u64)."""
    limit, wide = 2.0 ** max(bits, 16), _whole(value)
    if bits == 1:
        return value.double().trunc() != 0
    if bits < 64:
        return wide.clamp(0.0, limit - 1).to(torch.int64).to(INTEGER[bits])
    upper = (wide >= 2.0**63).to(torch.int64)  # int64 holds the lower half; the upper half is negative there
    number = (wide.clamp(min=0.0) - upper * 2.0**63).clamp(max=_below(2.0**63)).to(torch.int64)
    return torch.where(wide >= limit, -1, number + upper * torch.iinfo(torch.int64).min)


def unsigned_to_float(value: Tensor, target: torch.dtype) -> Tensor:
    """The number that the bits of an integer spell where none is a sign, to nearest even."""
    return value.view(UNSIGNED[value.element_size()]).to(target)


def _whole(value: Tensor) -> Tensor:
    """The integer part as float64; NaN is 0, infinities stay."""
    return torch.nan_to_num(value.double(), nan=0.0, posinf=float("inf"), neginf=float("-inf")).trunc()


def _below(limit: float) -> float:
    """The largest float64 integer under a power of two."""
    return limit - 1 if limit < 2.0**53 else limit - limit / 2.0**53


def round_to_tf32(value: Tensor) -> Tensor:
    """float32 with the 10 mantissa bits that tensor cores read: the lower 13 are dropped."""
    return (value.contiguous().view(torch.int32) & ~0x1FFF).view(torch.float32)
