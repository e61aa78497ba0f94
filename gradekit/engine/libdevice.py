"""tt.extern_elementwise: CUDA's libdevice functions by name, as torch computes them.

`__nv_expf` and `__nv_exp` are the same function of float and double; the table has the name without prefix and suffix.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gradekit.engine.budget import Unsupported
from gradekit.engine.casts import float_to_signed, float_to_unsigned
from gradekit.engine.frame import Frame, dtype_of
from gradekit.engine.integers import high_product, unsigned
from gradekit.engine.registry import evaluates

if TYPE_CHECKING:
    from gradekit.engine.ttir import Op

special = torch.special
Function = Callable[..., Tensor]

# --- integers, bits and conversions -----------------------------------------------------------------------------------
# Integers of 32 and 64 bits are int32 and int64 tensors whatever their signedness; the name says how to read them.

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


def _from_unsigned(target: torch.dtype) -> Function:
    def convert(x: Tensor) -> Tensor:
        if x.dtype is torch.int64:
            return x.view(torch.uint64).to(target)
        return unsigned(x).to(target)

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
    "popc": count_ones, "popcll": count_ones, "clz": leading_zeros, "clzll": leading_zeros, "ffs": first_one,
    "ffsll": first_one, "llabs": torch.abs, "isnand": lambda x: x.isnan().to(torch.int32),
    "isinfd": lambda x: x.isinf().to(torch.int32), "float_as_uint": lambda x: x.contiguous().view(torch.int32),
    "uint_as_float": lambda x: x.contiguous().view(torch.float32),
}  # fmt: skip

# --- floats -----------------------------------------------------------------------------------------------------------


def _round_half_away(x: Tensor) -> Tensor:
    return torch.trunc(x + torch.copysign(torch.full_like(x, 0.5), x))


FUNCTIONS: dict[str, Function] = INTEGER_FUNCTIONS | {
    "abs": torch.abs, "fabs": torch.abs, "exp": torch.exp, "exp2": torch.exp2, "expm1": torch.expm1,
    "exp10": lambda x: torch.pow(torch.full_like(x, 10.0), x), "fast_exp": torch.exp,
    "fast_exp10": lambda x: torch.pow(torch.full_like(x, 10.0), x),
    "log": torch.log, "log2": torch.log2, "log10": torch.log10, "log1p": torch.log1p,
    "logb": lambda x: torch.frexp(x.abs())[1].to(x.dtype) - 1,
    "fast_log": torch.log, "fast_log2": torch.log2, "fast_log10": torch.log10,
    "sin": torch.sin, "cos": torch.cos, "tan": torch.tan, "fast_sin": torch.sin, "fast_cos": torch.cos,
    "fast_tan": torch.tan, "asin": torch.asin, "acos": torch.acos, "atan": torch.atan, "atan2": torch.atan2,
    "sinh": torch.sinh, "cosh": torch.cosh, "tanh": torch.tanh, "fast_tanh": torch.tanh,
    "asinh": torch.asinh, "acosh": torch.acosh, "atanh": torch.atanh,
    "sinpi": lambda x: torch.sin(x * torch.pi), "cospi": lambda x: torch.cos(x * torch.pi),
    "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "cbrt": lambda x: x.abs().double().pow(1 / 3).copysign(x).to(x.dtype),
    "rcbrt": lambda x: x.abs().double().pow(-1 / 3).copysign(x).to(x.dtype),
    "fsqrt_rn": torch.sqrt, "dsqrt_rn": torch.sqrt, "frsqrt_rn": torch.rsqrt,
    "pow": torch.pow, "powi": torch.pow, "fast_pow": torch.pow, "fmod": torch.fmod,
    "remainder": lambda x, y: x - y * torch.round(x / y), "drem": lambda x, y: x - y * torch.round(x / y),
    "fdiv_rn": torch.div, "ddiv_rn": torch.div, "fast_fdivide": torch.div, "fdivide": torch.div,
    "frcp_rn": torch.reciprocal, "drcp_rn": torch.reciprocal,
    "fadd_rn": torch.add, "dadd_rn": torch.add, "fsub_rn": torch.sub, "dsub_rn": torch.sub,
    "fmul_rn": torch.mul, "dmul_rn": torch.mul,
    "fma": lambda a, b, c: (a.double() * b.double() + c.double()).to(a.dtype),
    "fma_rn": lambda a, b, c: (a.double() * b.double() + c.double()).to(a.dtype),
    "fmaf_rn": lambda a, b, c: (a.double() * b.double() + c.double()).to(a.dtype),
    "floor": torch.floor, "ceil": torch.ceil, "trunc": torch.trunc, "rint": torch.round, "nearbyint": torch.round,
    "round": _round_half_away, "llrint": lambda x: torch.round(x).to(torch.int64),
    "llround": lambda x: _round_half_away(x).to(torch.int64),
    "fmin": torch.fmin, "fmax": torch.fmax, "min": torch.minimum, "max": torch.maximum,
    "copysign": torch.copysign, "hypot": torch.hypot, "rhypot": lambda x, y: 1 / torch.hypot(x, y),
    "fdim": lambda x, y: torch.clamp(x - y, min=0), "nextafter": torch.nextafter, "ldexp": torch.ldexp,
    "scalbn": torch.ldexp, "ilogb": lambda x: (torch.frexp(x)[1] - 1).to(torch.int32),
    "saturate": lambda x: torch.nan_to_num(x).clamp(0, 1),
    "erf": torch.erf, "erfc": torch.erfc, "erfinv": torch.erfinv, "erfcinv": lambda x: torch.erfinv(1 - x),
    "erfcx": special.erfcx, "normcdf": special.ndtr, "normcdfinv": special.ndtri,
    "lgamma": torch.lgamma, "tgamma": lambda x: torch.exp(torch.lgamma(x)) * _gamma_sign(x),
    "j0": special.bessel_j0, "j1": special.bessel_j1, "y0": special.bessel_y0, "y1": special.bessel_y1,
    "cyl_bessel_i0": special.i0, "cyl_bessel_i1": special.i1,
    "isnan": lambda x: x.isnan().to(torch.int32), "isinf": lambda x: x.isinf().to(torch.int32),
    "finite": lambda x: x.isfinite().to(torch.int32), "isfinited": lambda x: x.isfinite().to(torch.int32),
    "finitef": lambda x: x.isfinite().to(torch.int32), "signbit": lambda x: x.signbit().to(torch.int32),
    "signbitd": lambda x: x.signbit().to(torch.int32),
    "mulhi": lambda a, b: ((a.to(torch.int64) * b.to(torch.int64)) >> 32).to(torch.int32),
    "umulhi": high_product,
    "int2float_rn": lambda x: x.to(torch.float32), "ll2float_rn": lambda x: x.to(torch.float32),
    "int2double_rn": lambda x: x.to(torch.float64), "ll2double_rn": lambda x: x.to(torch.float64),
    "double2float_rn": lambda x: x.to(torch.float32), "float_as_int": lambda x: x.contiguous().view(torch.int32),
    "int_as_float": lambda x: x.contiguous().view(torch.float32),
    "double_as_longlong": lambda x: x.contiguous().view(torch.int64),
    "longlong_as_double": lambda x: x.contiguous().view(torch.float64),
}  # fmt: skip


def _gamma_sign(x: Tensor) -> Tensor:
    return torch.where((x < 0) & (torch.floor(x) % 2 != 0), -1.0, 1.0).to(x.dtype)


def find(symbol: str) -> Function | None:
    """The function behind a libdevice symbol, or None."""
    name = symbol.removeprefix("__nv_")
    return FUNCTIONS.get(name) or (FUNCTIONS.get(name[:-1]) if name.endswith("f") else None)


@evaluates("tt.extern_elementwise")
def _evaluate_extern(frame: Frame, op: Op) -> Tensor:
    symbol = str(op.attributes.get("symbol", ""))
    function = find(symbol)
    if function is None:
        raise Unsupported(f"the library function {symbol}", frame.context.line(op))
    values = [frame.tensor(op, position) for position in range(len(op.operands))]
    return function(*values).to(dtype_of(op.result_types[0]))
