"""Mathematical functions, of tl and of libdevice."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from corpus.case import case, filled, given, integers, normal, positive, specials

N = 64


@case(e=filled(N), e2=filled(N), ln=filled(N), lb=filled(N), x=normal(N), p=positive(N), N=N, tolerance=3e-7)
@triton.jit
def exponentials(e, e2, ln, lb, x, p, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(p + i)
    tl.store(e + i, tl.exp(a))
    tl.store(e2 + i, tl.exp2(a))
    tl.store(ln + i, tl.log(b))
    tl.store(lb + i, tl.log2(b))


@case(
    s=filled(N),
    c=filled(N),
    root=filled(N),
    inverse=filled(N),
    x=normal(N, scale=5),
    p=positive(N),
    N=N,
    tolerance=3e-7,
)
@triton.jit
def waves_and_roots(s, c, root, inverse, x, p, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(p + i)
    tl.store(s + i, tl.sin(a))
    tl.store(c + i, tl.cos(a))
    tl.store(root + i, tl.sqrt(b))
    tl.store(inverse + i, tl.rsqrt(b))


@case(down=filled(N), up=filled(N), size=filled(N), error=filled(N), x=normal(N, scale=3), N=N, tolerance=3e-7)
@triton.jit
def rounding_and_erf(down, up, size, error, x, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    tl.store(down + i, tl.floor(a))
    tl.store(up + i, tl.ceil(a))
    tl.store(size + i, tl.abs(a))
    tl.store(error + i, tl.erf(a))


@case(out=filled(N), soft=filled(N), fast=filled(N), x=normal(N), p=positive(N), N=N, tolerance=3e-7)
@triton.jit
def composed(out, soft, fast, x, p, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(p + i)
    tl.store(out + i, tl.sigmoid(a))
    tl.store(soft + i, tl.softmax(a))
    tl.store(fast + i, tl.fdiv(a, b))


@case(
    e=filled(N, dtype=torch.float64),
    s=filled(N, dtype=torch.float64),
    x=normal(N, dtype=torch.float64),
    N=N,
    tolerance=1e-14,
)
@triton.jit
def double_precision(e, s, x, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    tl.store(e + i, tl.exp(a) + tl.log(tl.abs(a) + 1))
    tl.store(s + i, tl.sin(a) * tl.cos(a) + tl.sqrt(tl.abs(a)) + tl.erf(a))


def _brain(a):
    return {"out": torch.exp(a["x"].float()).bfloat16(), "root": a["x"].float().abs().sqrt().bfloat16()}


@case(
    out=filled(N, dtype=torch.bfloat16),
    root=filled(N, dtype=torch.bfloat16),
    x=normal(N, dtype=torch.bfloat16),
    N=N,
    oracle=_brain,
)
@triton.jit
def through_float32(out, root, x, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i).to(tl.float32)
    tl.store(out + i, tl.exp(a).to(tl.bfloat16))
    tl.store(root + i, tl.sqrt(tl.abs(a)).to(tl.bfloat16))


# --- libdevice: the interpreter has none, so torch says what is right --------------------------------------------------

NONE = "the interpreter has no libdevice"


def _each(x, *functions):
    """The functions of `x`, computed in double precision, one after another."""
    return {"out": torch.cat([function(x.double()) for function in functions]).to(x.dtype)}


def _hyperbolic(a):
    return _each(a["x"], torch.tanh, torch.sinh, torch.cosh, torch.asinh, lambda x: torch.acosh(1 + x.abs()),
                 lambda x: torch.atanh(x / 8))  # fmt: skip


@case(out=filled(6 * N), x=normal(N), N=N, oracle=_hyperbolic, not_interpreted=NONE, tolerance=1e-6)
@triton.jit
def hyperbolic(out, x, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    tl.store(out + i, libdevice.tanh(a))
    tl.store(out + N + i, libdevice.sinh(a))
    tl.store(out + 2 * N + i, libdevice.cosh(a))
    tl.store(out + 3 * N + i, libdevice.asinh(a))
    tl.store(out + 4 * N + i, libdevice.acosh(1 + tl.abs(a)))
    tl.store(out + 5 * N + i, libdevice.atanh(a / 8))


def _circular(a):
    return _each(a["x"], torch.sin, torch.cos, lambda x: torch.tan(x / 4), lambda x: torch.asin(x / 8),
                 lambda x: torch.acos(x / 8), torch.atan, lambda x: torch.atan2(x, x.flip(0)))  # fmt: skip


@case(out=filled(7 * N), x=normal(N), N=N, oracle=_circular, not_interpreted=NONE, tolerance=1e-6)
@triton.jit
def circular(out, x, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    tl.store(out + i, libdevice.sin(a))
    tl.store(out + N + i, libdevice.cos(a))
    tl.store(out + 2 * N + i, libdevice.tan(a / 4))
    tl.store(out + 3 * N + i, libdevice.asin(a / 8))
    tl.store(out + 4 * N + i, libdevice.acos(a / 8))
    tl.store(out + 5 * N + i, libdevice.atan(a))
    tl.store(out + 6 * N + i, libdevice.atan2(a, tl.load(x + N - 1 - i)))


def _powers(a):
    return _each(a["x"], torch.exp, torch.exp2, lambda x: 10**x, torch.expm1, lambda x: torch.log(x.abs()),
                 lambda x: torch.log1p(x.abs()), lambda x: torch.log10(x.abs()), lambda x: x.abs() ** 1.7,
                 lambda x: x.sign() * x.abs() ** (1 / 3), lambda x: torch.hypot(x, x + 1))  # fmt: skip


@case(out=filled(10 * N), x=normal(N), N=N, oracle=_powers, not_interpreted=NONE, tolerance=1e-6)
@case(name="float64", out=filled(10 * N, dtype=torch.float64), x=normal(N, dtype=torch.float64), N=N, oracle=_powers,
      not_interpreted=NONE, tolerance=1e-12)  # fmt: skip
@triton.jit
def powers(out, x, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    p = tl.abs(a)
    tl.store(out + i, libdevice.exp(a))
    tl.store(out + N + i, libdevice.exp2(a))
    tl.store(out + 2 * N + i, libdevice.exp10(a))
    tl.store(out + 3 * N + i, libdevice.expm1(a))
    tl.store(out + 4 * N + i, libdevice.log(p))
    tl.store(out + 5 * N + i, libdevice.log1p(p))
    tl.store(out + 6 * N + i, libdevice.log10(p))
    tl.store(out + 7 * N + i, libdevice.pow(p, tl.full((N,), 1.7, a.dtype)))
    tl.store(out + 8 * N + i, libdevice.cbrt(a))
    tl.store(out + 9 * N + i, libdevice.hypot(a, a + 1))


def _special(a):
    return _each(a["x"], torch.erf, torch.erfc, lambda x: torch.erfinv(x / 8), torch.lgamma,
                 lambda x: torch.lgamma(x.abs() + 1).exp(), torch.special.ndtr)  # fmt: skip


@case(out=filled(6 * N), x=normal(N), N=N, oracle=_special, not_interpreted=NONE, tolerance=2e-6)
@triton.jit
def special_functions(out, x, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    tl.store(out + i, libdevice.erf(a))
    tl.store(out + N + i, libdevice.erfc(a))
    tl.store(out + 2 * N + i, libdevice.erfinv(a / 8))
    tl.store(out + 3 * N + i, libdevice.lgamma(a))
    tl.store(out + 4 * N + i, libdevice.tgamma(tl.abs(a) + 1))
    tl.store(out + 5 * N + i, libdevice.normcdf(a))


def _whole(a):
    return _each(a["x"], torch.floor, torch.ceil, torch.trunc, torch.round, torch.round,
                 lambda x: x.sign() * (x.abs() + 0.5).floor(), torch.abs, lambda x: torch.fmod(x, 2.0),
                 lambda x: torch.copysign(x.flip(0), x), lambda x: x - 2 * torch.round(x / 2))  # fmt: skip


@case(
    out=filled(10 * 8), x=given(0.5, -0.5, 1.5, 2.5, -2.5, 0.3, -7.7, 100.0), N=8, oracle=_whole, not_interpreted=NONE
)
@triton.jit
def whole_numbers(out, x, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    tl.store(out + i, libdevice.floor(a))
    tl.store(out + N + i, libdevice.ceil(a))
    tl.store(out + 2 * N + i, libdevice.trunc(a))
    tl.store(out + 3 * N + i, libdevice.rint(a))
    tl.store(out + 4 * N + i, libdevice.nearbyint(a))
    tl.store(out + 5 * N + i, libdevice.round(a))
    tl.store(out + 6 * N + i, libdevice.abs(a))
    tl.store(out + 7 * N + i, libdevice.fmod(a, tl.full((N,), 2.0, tl.float32)))
    tl.store(out + 8 * N + i, libdevice.copysign(tl.load(x + N - 1 - i), a))
    tl.store(out + 9 * N + i, libdevice.remainder(a, tl.full((N,), 2.0, tl.float32)))


def _tests(a):
    x = a["x"]
    return {"nan": x.isnan().int(), "inf": x.isinf().int(), "finite": x.isfinite().int(), "sign": x.signbit().int()}


@case(nan=filled(N, dtype=torch.int32), inf=filled(N, dtype=torch.int32), finite=filled(N, dtype=torch.int32),
      sign=filled(N, dtype=torch.int32), x=specials(N), N=N, oracle=_tests, not_interpreted=NONE)  # fmt: skip
@triton.jit
def tests_of_floats(nan, inf, finite, sign, x, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    tl.store(nan + i, (libdevice.isnan(a) != 0).to(tl.int32))
    tl.store(inf + i, (libdevice.isinf(a) != 0).to(tl.int32))
    tl.store(finite + i, (libdevice.finitef(a) != 0).to(tl.int32))
    tl.store(sign + i, (libdevice.signbit(a) != 0).to(tl.int32))


def _counted(a):
    words = [format(value & 0xFFFFFFFF, "032b") for value in a["x"].tolist()]
    found = [
        [len(w) - len(w.lstrip("0")), w.count("1"), len(w) - len(w.rstrip("0")) + 1 if "1" in w else 0] for w in words
    ]
    return {"out": torch.tensor(found, dtype=torch.int32).T.flatten()}


@case(out=filled(3 * N, dtype=torch.int32), x=integers(N), N=N, oracle=_counted, not_interpreted=NONE)
@triton.jit
def bit_counts(out, x, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    tl.store(out + i, libdevice.clz(a))
    tl.store(out + N + i, libdevice.popc(a))
    tl.store(out + 2 * N + i, libdevice.ffs(a))


def _fast(a):
    return _each(a["x"], torch.sin, torch.cos, torch.exp, lambda x: torch.log(x.abs()), lambda x: x / (x.abs() + 1),
                 lambda x: x.abs().rsqrt(), lambda x: x * (x + 1) + 2)  # fmt: skip


@case(out=filled(7 * N), x=normal(N), N=N, oracle=_fast, not_interpreted=NONE, tolerance=1e-5)
@triton.jit
def fast_functions(out, x, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    p = tl.abs(a)
    tl.store(out + i, libdevice.fast_sinf(a))
    tl.store(out + N + i, libdevice.fast_cosf(a))
    tl.store(out + 2 * N + i, libdevice.fast_expf(a))
    tl.store(out + 3 * N + i, libdevice.fast_logf(p))
    tl.store(out + 4 * N + i, libdevice.fast_dividef(a, p + 1))
    tl.store(out + 5 * N + i, libdevice.rsqrt(p))
    tl.store(out + 6 * N + i, libdevice.fma(a, a + 1, tl.full((N,), 2.0, tl.float32)))
