"""libdevice's functions of integers and bits, its conversions between floats and integers, and its arithmetic and
conversions that round down (rd), up (ru) or toward zero (rz): all of float32, and sums and integers in float64.

Integers of 32 and 64 bits are int32 and int64 tensors whatever their signedness; the name says how to read them. To
round, the nearest number is found first; the sign of what it lacks, which float64 can hold exactly, says whether the
result is its neighbour.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from gradekit.engine.casts import float_to_signed, float_to_unsigned
from gradekit.engine.integers import multiply_high_unsigned, tensor

Function = Callable[..., Tensor]

UINT32 = 0xFFFFFFFF
ROUNDINGS: dict[str, Callable[[Tensor], Tensor]] = {
    "rn": torch.round, "rz": torch.trunc, "rd": torch.floor, "ru": torch.ceil
}  # fmt: skip


def _bit(x: Tensor, position: int) -> Tensor:
    return (x >> position) & 1


def _width(x: Tensor) -> int:
    return 8 * x.dtype.itemsize


def count_ones(x: Tensor) -> Tensor:
    """How many bits of each element are set."""
    return sum((_bit(x, k) for k in range(_width(x))), torch.zeros_like(x)).to(torch.int32)


def reversed_bits(x: Tensor) -> Tensor:
    """Each element with its bits in the opposite order."""
    top = _width(x) - 1
    return sum((_bit(x, k) << (top - k) for k in range(top + 1)), torch.zeros_like(x))


def leading_zeros(x: Tensor) -> Tensor:
    """How many zeros stand above the highest one; the width for zero."""
    found = torch.full_like(x, _width(x), dtype=torch.int32)
    for k in range(_width(x)):
        found = torch.where(_bit(x, k) == 1, _width(x) - 1 - k, found)
    return found


def first_one(x: Tensor) -> Tensor:
    """The position of the lowest one, counted from 1; 0 for zero."""
    found = torch.zeros_like(x, dtype=torch.int32)
    for k in reversed(range(_width(x))):
        found = torch.where(_bit(x, k) == 1, k + 1, found)
    return found


def _unsigned(x: Tensor) -> Tensor:
    return x.to(torch.int64) & UINT32


def _low_24(x: Tensor, signed: bool) -> Tensor:
    low = x.to(torch.int64) & 0xFFFFFF
    return torch.where((low >= 1 << 23) & signed, low - (1 << 24), low)


def _product_of_24_bits(signed: bool) -> Function:
    return lambda a, b: (_low_24(a, signed) * _low_24(b, signed)).to(torch.int32)


def _average(widen: Callable[[Tensor], Tensor], up: int) -> Function:
    return lambda a, b: ((widen(a) + widen(b) + up) >> 1).to(torch.int32)


def _difference_plus(widen: Callable[[Tensor], Tensor]) -> Function:
    return lambda a, b, c: ((widen(a) - widen(b)).abs() + widen(c)).to(torch.int32)


def _multiply_high(a: Tensor, b: Tensor) -> Tensor:
    """The upper 64 bits of the signed product: the unsigned ones, less what the signs added."""
    high = tensor(multiply_high_unsigned(a, b, 64, a.shape), 64, a.shape)
    return high - torch.where(a < 0, b, 0) - torch.where(b < 0, a, 0)


def _picked_bytes(a: Tensor, b: Tensor, selector: Tensor) -> Tensor:
    """prmt: each byte of the result is one of the eight of b:a, or its sign, as a nibble of the selector says."""
    both = torch.stack([(value >> (8 * k)) & 0xFF for value in (_unsigned(a), _unsigned(b)) for k in range(4)])
    result = torch.zeros_like(both[0])
    for k in range(4):
        nibble = (_unsigned(selector) >> (4 * k)) & 15
        byte = both.gather(0, (nibble & 7)[None])[0]
        result |= torch.where(nibble >= 8, torch.where(byte >= 128, 0xFF, 0), byte) << (8 * k)
    return result.to(torch.int32)


def _norm(*values: Tensor) -> Tensor:
    return torch.stack([value.double() for value in values]).square().sum(0).sqrt().to(values[0].dtype)


def _from_unsigned(target: torch.dtype) -> Function:
    def convert(x: Tensor) -> Tensor:
        if x.dtype is torch.int64:
            return x.view(torch.uint64).to(target)
        return _unsigned(x).to(target)

    return convert


def _to_integer(round_: Callable[[Tensor], Tensor], bits: int, signed: bool) -> Function:
    convert = float_to_signed if signed else float_to_unsigned
    return lambda x: convert(round_(x), bits)


def _conversions() -> dict[str, Function]:
    kinds = {"int": (32, True), "uint": (32, False), "ll": (64, True), "ull": (64, False)}
    found = {
        f"{source}2{kind}_{rounding}": _to_integer(round_, *form)
        for source in ("float", "double")
        for kind, form in kinds.items()
        for rounding, round_ in ROUNDINGS.items()
    }
    for kind in ("uint", "ull"):
        found[f"{kind}2float_rn"], found[f"{kind}2double_rn"] = map(_from_unsigned, (torch.float32, torch.float64))
    return found


INTEGER_FUNCTIONS: dict[str, Function] = _conversions() | {
    "popc": count_ones, "popcll": count_ones, "brev": reversed_bits, "brevll": reversed_bits,
    "clz": leading_zeros, "clzll": leading_zeros, "ffs": first_one, "ffsll": first_one, "byte_perm": _picked_bytes,
    "llabs": torch.abs, "mul24": _product_of_24_bits(True), "umul24": _product_of_24_bits(False),
    "hadd": _average(Tensor.long, 0), "rhadd": _average(Tensor.long, 1),
    "uhadd": _average(_unsigned, 0), "urhadd": _average(_unsigned, 1),
    "sad": _difference_plus(Tensor.long), "usad": _difference_plus(_unsigned),
    "mul64hi": _multiply_high, "umul64hi": lambda a, b: tensor(multiply_high_unsigned(a, b, 64, a.shape), 64, a.shape),
    "isnand": lambda x: x.isnan().to(torch.int32), "isinfd": lambda x: x.isinf().to(torch.int32),
    "float_as_uint": lambda x: x.contiguous().view(torch.int32),
    "uint_as_float": lambda x: x.contiguous().view(torch.float32),
    "double2hiint": lambda x: (x.contiguous().view(torch.int64) >> 32).to(torch.int32),
    "double2loint": lambda x: x.contiguous().view(torch.int64).to(torch.int32),
    "hiloint2double": lambda high, low: ((high.long() << 32) | _unsigned(low)).view(torch.float64),
    "norm3d": _norm, "norm4d": _norm, "rnorm3d": lambda *x: 1 / _norm(*x), "rnorm4d": lambda *x: 1 / _norm(*x),
}  # fmt: skip
"""By the name without its prefix, as in `libdevice.FUNCTIONS`."""


# --- functions that round down (rd), up (ru) or toward zero (rz) ------------------------------------------------------

Pair = tuple[Tensor, Tensor]
RoundedSum = Callable[[Tensor, Tensor, str], Tensor]

INFINITY = torch.tensor(float("inf"))


def _settled(nearest: Tensor, rest: Tensor, mode: str) -> Tensor:
    """`nearest`, or its neighbour: `rest` has the sign of exact - nearest,
    NaN where there is nothing to do."""
    down = torch.where(rest < 0, torch.nextafter(nearest, -INFINITY), nearest)
    up = torch.where(rest > 0, torch.nextafter(nearest, INFINITY), nearest)
    if mode == "rz":
        return torch.where(nearest > 0, down, torch.where(nearest < 0, up, nearest))
    return down if mode == "rd" else up


def _sum(a: Tensor, b: Tensor) -> Pair:
    """a + b in float64, and exactly what it lacks (Knuth's two-sum)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _rounded_sum(a: Tensor, b: Tensor, mode: str) -> Tensor:
    """a + b of float64 operands, rounded once, to float32."""
    total, lost = _sum(a, b)
    nearest = total.to(torch.float32)
    return _settled(nearest, (total - nearest.double()) + lost, mode)


def _add(mode: str) -> Function:
    return lambda a, b: _rounded_sum(a.double(), b.double(), mode)


def _subtract(mode: str) -> Function:
    return lambda a, b: _rounded_sum(a.double(), -b.double(), mode)


def _multiply_add(mode: str) -> Function:
    return lambda a, b, c: _rounded_sum(a.double() * b.double(), c.double(), mode)


def _multiply(mode: str) -> Function:
    return lambda a, b: _to_float(mode)(a.double() * b.double())


def _divide(mode: str) -> Function:
    def divide(a: Tensor, b: Tensor) -> Tensor:
        wide, divisor = a.double(), b.double()
        nearest = a / b
        return _settled(nearest, (wide - nearest.double() * divisor) * torch.sign(divisor), mode)

    return divide


def _reciprocal(mode: str) -> Function:
    return lambda x: _divide(mode)(torch.ones_like(x), x)


def _root(mode: str) -> Function:
    def root(x: Tensor) -> Tensor:
        nearest = torch.sqrt(x)
        return _settled(nearest, x.double() - nearest.double().square(), mode)

    return root


def _to_float(mode: str) -> Function:
    return lambda x: _rounded_sum(x.double(), torch.zeros_like(x, dtype=torch.float64), mode)


def _wide_sum(a: Tensor, b: Tensor, mode: str) -> Tensor:
    """a + b of float64 operands, rounded once, to float64; a sum of finite numbers that overflows lacks something."""
    total, lost = _sum(a, b)
    overflows = total.isinf() & a.isfinite() & b.isfinite()
    return _settled(total, torch.where(overflows, -torch.sign(total), lost), mode)


def _add_wide(mode: str) -> Function:
    return lambda a, b: _wide_sum(a, b, mode)


def _subtract_wide(mode: str) -> Function:
    return lambda a, b: _wide_sum(a, -b, mode)


def _from_integer(mode: str, bits: int, signed: bool, rounded: RoundedSum = _rounded_sum) -> Function:
    """Both halves of an integer are exact in float64; their sum is `rounded` once."""

    def convert(x: Tensor) -> Tensor:
        wide = x.to(torch.int64) & UINT32 if bits == 32 and not signed else x.to(torch.int64)
        high = (wide >> 32) if signed or bits == 32 else (wide >> 32) & UINT32
        return rounded(high.double() * 2.0**32, (wide & UINT32).double(), mode)

    return convert


def _table(mode: str) -> dict[str, Function]:
    fma = _multiply_add(mode)
    return {
        f"fadd_{mode}": _add(mode), f"fsub_{mode}": _subtract(mode), f"fmul_{mode}": _multiply(mode),
        f"fdiv_{mode}": _divide(mode), f"frcp_{mode}": _reciprocal(mode), f"fsqrt_{mode}": _root(mode),
        f"fmaf_{mode}": fma, f"double2float_{mode}": _to_float(mode),
        f"int2float_{mode}": _from_integer(mode, 32, True), f"uint2float_{mode}": _from_integer(mode, 32, False),
        f"ll2float_{mode}": _from_integer(mode, 64, True), f"ull2float_{mode}": _from_integer(mode, 64, False),
        f"ll2double_{mode}": _from_integer(mode, 64, True, _wide_sum),
        f"ull2double_{mode}": _from_integer(mode, 64, False, _wide_sum),
        f"dadd_{mode}": _add_wide(mode), f"dsub_{mode}": _subtract_wide(mode),
    }  # fmt: skip


ROUNDED: dict[str, Function] = {name: f for mode in ("rd", "ru", "rz") for name, f in _table(mode).items()}
"""By libdevice's names without their prefix; float64 products, quotients and roots that round this way are missing."""
