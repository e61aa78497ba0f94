"""Floating-point arithmetic in every precision, with special values; comparisons, minima, clamping, selection."""

import torch
import triton
import triton.language as tl

from corpus.case import case, filled, given, normal, positive, specials

N = 64
NAN, INF = float("nan"), float("inf")


@triton.jit
def float_arithmetic(added, taken, times, quotient, x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(added + i, a + b)
    tl.store(taken + i, a - b)
    tl.store(times + i, a * b)
    tl.store(quotient + i, a / b)


def _arithmetic(a):
    """In torch, operation by operation: the interpreter adds bfloat16 as bit patterns."""
    x, y = a["x"], a["y"]
    return {"added": x + y, "taken": x - y, "times": x * y, "quotient": (x.float() / y.float()).to(x.dtype)}


for _dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
    _outputs = {name: filled(N, dtype=_dtype) for name in ("added", "taken", "times", "quotient")}
    case(name=str(_dtype)[6:], **_outputs, x=specials(N, dtype=_dtype), y=normal(N, dtype=_dtype), N=N,
         oracle=_arithmetic if _dtype == torch.bfloat16 else None)(float_arithmetic)  # fmt: skip


@case(
    out=filled(N), rest=filled(N), minus=filled(N), x=normal(N, scale=20), y=given(*([3.0, -3.0, 0.7, -1.5] * 16)), N=N
)
@triton.jit
def float_remainder(out, rest, minus, x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(out + i, a % b)
    tl.store(rest + i, a - b)
    tl.store(minus + i, -a)


_FLAGS = ("less", "most", "more", "least", "same", "other")


@triton.jit
def float_comparisons(less, most, more, least, same, other, x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(less + i, a < b)
    tl.store(most + i, a <= b)
    tl.store(more + i, a > b)
    tl.store(least + i, a >= b)
    tl.store(same + i, a == b)
    tl.store(other + i, a != b)


def _comparisons(a):
    x, y = a["x"], a["y"]
    return {"less": x < y, "most": x <= y, "more": x > y, "least": x >= y, "same": x == y, "other": x != y}


for _dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
    case(name=str(_dtype)[6:], **{name: filled(16, dtype=torch.bool, value=1) for name in _FLAGS},
         x=given(1, 2, NAN, INF, -INF, 0.0, -0.0, 3, NAN, 1, 2, 3, 4, 5, -1, -2, dtype=_dtype),
         y=given(2, 1, 1, INF, INF, -0.0, 0.0, 3, NAN, NAN, 2, -3, 4, 6, -2, -1, dtype=_dtype), N=16,
         oracle=_comparisons)(float_comparisons)  # fmt: skip


@triton.jit
def extremes(low, high, low_nan, high_nan, clamped, x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(low + i, tl.minimum(a, b))
    tl.store(high + i, tl.maximum(a, b))
    tl.store(low_nan + i, tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL))
    tl.store(high_nan + i, tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL))
    tl.store(clamped + i, tl.clamp(a, -0.5, 0.75))


def _extremes(a):
    x, y = a["x"], a["y"]
    return {
        "low": torch.fmin(x, y), "high": torch.fmax(x, y), "low_nan": torch.minimum(x, y),
        "high_nan": torch.maximum(x, y), "clamped": torch.fmin(torch.fmax(x, torch.tensor(-0.5)), torch.tensor(0.75)),
    }  # fmt: skip


case(**{name: filled(N) for name in ("low", "high", "low_nan", "high_nan", "clamped")}, x=specials(N), y=specials(N), N=N,
     oracle=_extremes)(extremes)  # fmt: skip


@case(out=filled(N), nan_too=filled(N), x=specials(N), low=normal(N), N=N,
      oracle=lambda a: {"out": torch.fmin(torch.fmax(a["x"], a["low"]), a["low"] + 1),
                        "nan_too": torch.clamp(a["x"], a["low"], a["low"] + 1)})  # fmt: skip
@triton.jit
def clamped_between(out, nan_too, x, low, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(low + i)
    tl.store(out + i, tl.clamp(a, b, b + 1))
    tl.store(nan_too + i, tl.clamp(a, b, b + 1, propagate_nan=tl.PropagateNan.ALL))


@case(out=filled(N), x=specials(N), y=normal(N), N=N)
@triton.jit
def selection(out, x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    c = tl.where(a > b, a, b)
    c = tl.where(i % 3 == 0, c, 0.0)
    c = tl.where(tl.program_id(0) == 0, c, b)
    tl.store(out + i, tl.where((i < 50) & (b > -1), c, float("inf")))


@case(out=filled(N), rounded=filled(N), root=filled(N), x=normal(N), y=normal(N), z=positive(N), N=N,
      oracle=lambda a: {"out": (a["x"].double() * a["y"].double() + a["z"].double()).float(),
                        "rounded": a["x"] / a["z"], "root": a["z"].sqrt()}, tolerance=1e-7)  # fmt: skip
@triton.jit
def exactly_rounded(out, rounded, root, x, y, z, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b, c = tl.load(x + i), tl.load(y + i), tl.load(z + i)
    tl.store(out + i, tl.fma(a, b, c))
    tl.store(rounded + i, tl.div_rn(a, c))
    tl.store(root + i, tl.sqrt_rn(c))


@case(out=filled(N), x=normal(N), s=0.1, t=3, N=N)
@triton.jit
def scalar_float(out, x, s, t, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    tl.store(out + i, (a * s + t) / (1 + s * 2) - 1.5 * t)


@case(out=filled(N, dtype=torch.float16), x=normal(N, dtype=torch.float16), y=normal(N), N=N, tolerance=1e-3)
@triton.jit
def mixed_floats(out, x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(out + i, a * 2.0 + b * a + i)


@case(out=filled(N, dtype=torch.float16), x=normal(N, dtype=torch.float16), n=3, N=N)
@triton.jit
def half_with_scalars(out, x, n, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    tl.store(out + i, a * n + 0.1)
