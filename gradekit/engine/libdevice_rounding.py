"""libdevice's arithmetic and conversions that round down (rd), up (ru) or toward zero (rz): all of float32, and sums
and integers in float64.

The nearest number is found first; the sign of what it lacks, which float64 can hold exactly, says whether the result
is its neighbour.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from gradekit.engine.libdevice_integers import UINT32

Function = Callable[..., Tensor]
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
