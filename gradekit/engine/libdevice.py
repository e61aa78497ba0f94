"""tt.extern_elementwise: CUDA's libdevice functions by name, as torch computes them.

`__nv_expf` and `__nv_exp` are the same function of float and double; the table has the name without prefix and suffix.
"""

import functools
from collections.abc import Callable

import torch
from torch import Tensor

from gradekit.engine.budget import Unsupported
from gradekit.engine.casts import float_to_signed, float_to_unsigned, unsigned_to_float
from gradekit.engine.frame import Frame, dtype_of
from gradekit.engine.integers import high_product
from gradekit.engine.ops_arith import LIKE_TORCH, cube_root, multiply_add, round_half_away
from gradekit.engine.registry import evaluates
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
    floats = {"float": torch.float32, "double": torch.float64, "int": torch.int32, "uint": torch.int32,
              "longlong": torch.int64}  # fmt: skip
    for name in ("float", "double"):
        for kind in ("uint", "ull"):
            found[f"{kind}2{name}_rn"] = functools.partial(unsigned_to_float, target=floats[name])
        for source in ("int", "ll", "double"):
            found[f"{source}2{name}_rn"] = functools.partial(torch.Tensor.to, dtype=floats[name])
        for bits in ("int", "uint", "longlong"):
            found[f"{name}_as_{bits}"], found[f"{bits}_as_{name}"] = _bits_as(floats[bits]), _bits_as(floats[name])
    return found


def _bits_as(dtype: torch.dtype) -> Function:
    return lambda x: x.contiguous().view(dtype)


FUNCTIONS: dict[str, Function] = _conversions() | LIKE_TORCH | {
    "popc": count_ones, "popcll": count_ones, "clz": leading_zeros, "clzll": leading_zeros, "ffs": first_one,
    "ffsll": first_one, "llabs": torch.abs,
    "abs": torch.abs, "fabs": torch.abs, "exp10": lambda x: torch.pow(torch.full_like(x, 10.0), x),
    "logb": lambda x: torch.frexp(x.abs())[1].to(x.dtype) - 1,
    "sinpi": lambda x: torch.sin(x * torch.pi), "cospi": lambda x: torch.cos(x * torch.pi),
    "cbrt": cube_root, "rcbrt": lambda x: x.abs().double().pow(-1 / 3).copysign(x).to(x.dtype),
    "pow": torch.pow, "powi": torch.pow, "fmod": torch.fmod,
    "remainder": lambda x, y: x - y * torch.round(x / y), "drem": lambda x, y: x - y * torch.round(x / y),
    "add_rn": torch.add, "sub_rn": torch.sub, "mul_rn": torch.mul, "div_rn": torch.div, "rcp_rn": torch.reciprocal,
    "sqrt_rn": torch.sqrt, "rsqrt_rn": torch.rsqrt, "fdivide": torch.div,
    "fma": multiply_add, "fma_rn": multiply_add, "fmaf_rn": multiply_add,
    "rint": torch.round, "nearbyint": torch.round, "round": round_half_away,
    "llrint": lambda x: torch.round(x).to(torch.int64), "llround": lambda x: round_half_away(x).to(torch.int64),
    "fmin": torch.fmin, "fmax": torch.fmax, "min": torch.minimum, "max": torch.maximum,
    "hypot": torch.hypot, "rhypot": lambda x, y: 1 / torch.hypot(x, y),
    "fdim": lambda x, y: torch.clamp(x - y, min=0), "nextafter": torch.nextafter, "ldexp": torch.ldexp,
    "scalbn": torch.ldexp, "ilogb": lambda x: (torch.frexp(x)[1] - 1).to(torch.int32),
    "saturate": lambda x: torch.nan_to_num(x).clamp(0, 1),
    "erfinv": torch.erfinv, "erfcinv": lambda x: torch.erfinv(1 - x),
    "erfcx": special.erfcx, "normcdf": special.ndtr, "normcdfinv": special.ndtri,
    "lgamma": torch.lgamma, "tgamma": lambda x: torch.exp(torch.lgamma(x)) * _gamma_sign(x),
    "j0": special.bessel_j0, "j1": special.bessel_j1, "y0": special.bessel_y0, "y1": special.bessel_y1,
    "cyl_bessel_i0": special.i0, "cyl_bessel_i1": special.i1,
    "isnan": lambda x: x.isnan().to(torch.int32), "isinf": lambda x: x.isinf().to(torch.int32),
    "finite": lambda x: x.isfinite().to(torch.int32), "isfinite": lambda x: x.isfinite().to(torch.int32),
    "signbit": lambda x: x.signbit().to(torch.int32),
    "mulhi": lambda a, b: ((a.to(torch.int64) * b.to(torch.int64)) >> 32).to(torch.int32), "umulhi": high_product,
}  # fmt: skip


def _gamma_sign(x: Tensor) -> Tensor:
    return torch.where((x < 0) & (torch.floor(x) % 2 != 0), -1.0, 1.0).to(x.dtype)


def find(symbol: str) -> Function | None:
    """The function behind a libdevice symbol, or None."""
    name = symbol.removeprefix("__nv_").removeprefix("fast_")
    names = (name, name.removesuffix("f"), name.removesuffix("d"), name[1:] if name[:1] in "fd" else "")
    return next((FUNCTIONS[one] for one in names if one in FUNCTIONS), None)


@evaluates("tt.extern_elementwise")
def _evaluate_extern(frame: Frame, op: Op) -> Tensor:
    symbol = str(op.attributes.get("symbol", ""))
    function = find(symbol)
    if function is None:
        raise Unsupported(f"the library function {symbol}", frame.context.line(op))
    values = [frame.tensor(op, position) for position in range(len(op.operands))]
    return function(*values).to(dtype_of(op.result_types[0]))
