"""Conversions between every two dtypes, the small floats, bit casts, and integers made of floats."""

import torch
import triton
import triton.language as tl

from corpus.case import case, elementwise, filled, given, integers, normal, specials

N = 64
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
FP8 = (torch.float8_e4m3fn, torch.float8_e5m2)
INTS = (torch.bool, torch.int8, torch.uint8, torch.int16, torch.int32, torch.uint32, torch.int64)


@triton.jit
def convert(out, x, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i).to(out.dtype.element_ty))


def _converted(dtype):
    return lambda a: {"out": a["x"].to(dtype)}


def _short(dtype):
    return str(dtype)[6:]


for _from in FLOATS:
    for _to in FLOATS:
        if _from != _to:
            case(name=f"{_short(_from)} to {_short(_to)}", x=specials(N, dtype=_from), out=filled(N, dtype=_to), N=N,
                 oracle=_converted(_to))(convert)  # fmt: skip
    for _to in INTS:
        # from -1 to 100, where every conversion is defined
        _values = given(*[0.0, -0.25, 0.5, 1.0, 1.5, 2.5, 99.75, 100.0] * 8, dtype=_from)
        case(name=f"{_short(_from)} to {_short(_to)}", x=_values, out=filled(N, dtype=_to), N=N,
             oracle=_converted(_to))(convert)  # fmt: skip
for _from in INTS:
    _values = integers(N, dtype=_from) if _from != torch.bool else given(*[0, 1, 1, 0] * 16, dtype=_from)
    for _to in INTS + FLOATS:
        if _from != _to:
            case(name=f"{_short(_from)} to {_short(_to)}", x=_values, out=filled(N, dtype=_to), N=N,
                 oracle=_converted(_to))(convert)  # fmt: skip


def _finite(a, dtype):
    """Triton's conversion to e4m3 saturates where torch's gives NaN, so that inputs stay in range."""
    return a["x"].float().to(dtype)


for _from in FP8:
    _every = given(*range(256), dtype=torch.uint8)
    for _to in (torch.float16, torch.bfloat16, torch.float32):
        case(name=f"{_short(_from)} to {_short(_to)}", out=filled(256, dtype=_to), N=256, oracle=_converted(_to),
             x=lambda generator, dtype=_from: torch.arange(256).to(torch.uint8).view(dtype))(convert)  # fmt: skip
    for _to in (torch.float16, torch.bfloat16, torch.float32):
        case(name=f"{_short(_to)} to {_short(_from)}", x=normal(256, dtype=_to, scale=30), N=256,
             out=lambda generator, dtype=_from: torch.zeros(256).to(dtype),
             oracle=lambda a, dtype=_from: {"out": _finite(a, dtype)})(convert)  # fmt: skip


def _toward_zero(a):
    bits = a["x"].view(torch.int32)
    return {"half": _chopped(a["x"], torch.float16), "brain": (bits >> 16).to(torch.int16).view(torch.bfloat16)}


def _chopped(x, dtype):
    near = x.to(dtype)
    step = (near.view(torch.int16) - 1).view(dtype)
    return torch.where(near.float().abs() > x.abs(), step, near)


elementwise("toward_zero", {"x": normal(N)}, {
    "half": 'a.to(tl.float16, fp_downcast_rounding="rtz")', "brain": 'a.to(tl.bfloat16, fp_downcast_rounding="rtz")',
}, dtype=FLOATS[:2], oracle=_toward_zero)
elementwise("bits_of_a_float", {"x": specials(N)}, {
    "out": "a.to(tl.int32, bitcast=True)", "back": "(a.to(tl.int32, bitcast=True) & 0x7FFFFFFF).to(tl.float32, bitcast=True)",
}, dtype=(torch.int32, torch.float32), oracle=lambda a: {
    "out": a["x"].view(torch.int32), "back": (a["x"].view(torch.int32) & 0x7FFFFFFF).view(torch.float32),
})
elementwise("bits_of_a_half", {"x": normal(N, dtype=torch.float16)}, {
    "out": "a.to(tl.int16, bitcast=True)", "brain": "a.to(tl.bfloat16, bitcast=True)",
}, dtype=(torch.int16, torch.bfloat16), oracle=lambda a: {"out": a["x"].view(torch.int16), "brain": a["x"].view(torch.bfloat16)})
elementwise("small_floats_from_bits", {"x": integers(N, dtype=torch.uint8, low=0, high=120)}, {
    "out": "a.to(tl.float8e4nv, bitcast=True).to(tl.float32) + a.to(tl.float8e5, bitcast=True).to(tl.float32)",
}, oracle=lambda a: {"out": a["x"].view(torch.float8_e4m3fn).float() + a["x"].view(torch.float8_e5m2).float()})


@case(out=filled(N), x=integers(N, dtype=torch.int32), N=N,
      oracle=lambda a: {"out": a["x"].view(torch.int8).view(-1, 4)[:, 0].float()})  # fmt: skip
@triton.jit
def narrow_through_a_pointer(out, x, N: tl.constexpr):
    i = tl.arange(0, N)
    b = x.to(tl.pointer_type(tl.int8))
    tl.store(out + i, tl.load(b + i * 4))
