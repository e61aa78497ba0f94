"""Mathematical functions, of tl and of libdevice."""

from collections.abc import Callable
from typing import Any

import torch

from corpus.case import Maker, Tensors, case, elementwise, filled, given, integers, normal, positive, specials, written

N = 64
TWO = {"x": normal(N), "p": positive(N)}
LONG, BRAIN = torch.float64, torch.bfloat16

elementwise("exponentials", TWO, {"e": "tl.exp(a)", "e2": "tl.exp2(a)", "ln": "tl.log(b)", "lb": "tl.log2(b)"}, tolerance=3e-7)
elementwise("waves_and_roots", TWO | {"x": normal(N, scale=5)}, {
    "s": "tl.sin(a)", "c": "tl.cos(a)", "root": "tl.sqrt(b)", "inverse": "tl.rsqrt(b)",
}, tolerance=3e-7)
elementwise("rounding_and_erf", {"x": normal(N, scale=3)}, {
    "down": "tl.floor(a)", "up": "tl.ceil(a)", "size": "tl.abs(a)", "error": "tl.erf(a)",
}, tolerance=3e-7)
elementwise("composed", TWO, {"out": "tl.sigmoid(a)", "soft": "tl.softmax(a)", "fast": "tl.fdiv(a, b)"}, tolerance=3e-7)
elementwise("double_precision", {"x": normal(N, dtype=LONG)}, {
    "e": "tl.exp(a) + tl.log(tl.abs(a) + 1)", "s": "tl.sin(a) * tl.cos(a) + tl.sqrt(tl.abs(a)) + tl.erf(a)",
}, dtype=LONG, tolerance=1e-14)
elementwise("through_float32", {"x": normal(N, dtype=BRAIN)}, {
    "out": "tl.exp(a.to(tl.float32)).to(tl.bfloat16)", "root": "tl.sqrt(tl.abs(a.to(tl.float32))).to(tl.bfloat16)",
}, dtype=BRAIN, oracle=lambda a: {"out": a["x"].float().exp().to(BRAIN), "root": a["x"].float().abs().sqrt().to(BRAIN)})


# --- libdevice: the interpreter has none, so torch says what is right --------------------------------------------------

NONE = "the interpreter has no libdevice"
Functions = dict[str, Callable[[torch.Tensor], torch.Tensor]]


def in_double(functions: Functions) -> Callable[[Tensors], Tensors]:
    """The functions of x, computed in double precision, one after another."""
    of = functions.values()
    return lambda a: {"out": torch.cat([function(a["x"].double()) for function in of]).to(a["x"].dtype)}


def of_libdevice(name: str, functions: Functions, x: Maker = TWO["x"], size: int = N, tolerance: float = 1e-6) -> Any:
    """An entry that stores each of these calls of libdevice, where p is |a|, one after another."""
    stores = [f"tl.store(out + {k} * N + i, libdevice.{call})" for k, call in enumerate(functions)]
    kernel = written(name, "out, x, N: tl.constexpr", "i = tl.arange(0, N)", "a = tl.load(x + i)", "p = tl.abs(a)", *stores)
    given = {"out": filled(len(functions) * size), "x": x, "N": size}
    return case(**given, oracle=in_double(functions), not_interpreted=NONE, tolerance=tolerance)(kernel)


of_libdevice("hyperbolic", {
    "tanh(a)": torch.tanh, "sinh(a)": torch.sinh, "cosh(a)": torch.cosh, "asinh(a)": torch.asinh,
    "acosh(1 + p)": lambda x: torch.acosh(1 + x.abs()), "atanh(a / 8)": lambda x: torch.atanh(x / 8),
})
of_libdevice("circular", {
    "sin(a)": torch.sin, "cos(a)": torch.cos, "tan(a / 4)": lambda x: torch.tan(x / 4), "atan(a)": torch.atan,
    "asin(a / 8)": lambda x: torch.asin(x / 8), "acos(a / 8)": lambda x: torch.acos(x / 8),
    "atan2(a, tl.load(x + N - 1 - i))": lambda x: torch.atan2(x, x.flip(0)),
})
POWERS: Functions = {
    "exp(a)": torch.exp, "exp2(a)": torch.exp2, "exp10(a)": lambda x: 10**x, "expm1(a)": torch.expm1,
    "log(p)": lambda x: torch.log(x.abs()), "log1p(p)": lambda x: torch.log1p(x.abs()),
    "log10(p)": lambda x: torch.log10(x.abs()), "pow(p, tl.full((N,), 1.7, a.dtype))": lambda x: x.abs() ** 1.7,
    "cbrt(a)": lambda x: x.sign() * x.abs() ** (1 / 3), "hypot(a, a + 1)": lambda x: torch.hypot(x, x + 1),
}
case(name="float64", out=filled(10 * N, dtype=LONG), x=normal(N, dtype=LONG), N=N, oracle=in_double(POWERS),
     not_interpreted=NONE, tolerance=1e-12)(of_libdevice("powers", POWERS))  # fmt: skip
of_libdevice("special_functions", {
    "erf(a)": torch.erf, "erfc(a)": torch.erfc, "erfinv(a / 8)": lambda x: torch.erfinv(x / 8), "lgamma(a)": torch.lgamma,
    "tgamma(p + 1)": lambda x: torch.lgamma(x.abs() + 1).exp(), "normcdf(a)": torch.special.ndtr,
}, tolerance=2e-6)
of_libdevice("whole_numbers", {
    "floor(a)": torch.floor, "ceil(a)": torch.ceil, "trunc(a)": torch.trunc, "rint(a)": torch.round,
    "nearbyint(a)": torch.round, "round(a)": lambda x: x.sign() * (x.abs() + 0.5).floor(), "abs(a)": torch.abs,
    "fmod(a, tl.full((N,), 2.0, tl.float32))": lambda x: torch.fmod(x, 2.0),
    "copysign(tl.load(x + N - 1 - i), a)": lambda x: torch.copysign(x.flip(0), x),
    "remainder(a, tl.full((N,), 2.0, tl.float32))": lambda x: x - 2 * torch.round(x / 2),
}, given(0.5, -0.5, 1.5, 2.5, -2.5, 0.3, -7.7, 100.0), 8, tolerance=0)
of_libdevice("fast_functions", {
    "fast_sinf(a)": torch.sin, "fast_cosf(a)": torch.cos, "fast_expf(a)": torch.exp,
    "fast_logf(p)": lambda x: torch.log(x.abs()), "fast_dividef(a, p + 1)": lambda x: x / (x.abs() + 1),
    "rsqrt(p)": lambda x: x.abs().rsqrt(), "fma(a, a + 1, tl.full((N,), 2.0, tl.float32))": lambda x: x * (x + 1) + 2,
}, tolerance=1e-5)
TESTS = {"nan": torch.isnan, "inf": torch.isinf, "finite": torch.isfinite, "sign": torch.signbit}
elementwise("tests_of_floats", {"x": specials(N)}, {
    name: f"(libdevice.{call}(a) != 0).to(tl.int32)" for name, call in zip(TESTS, ("isnan", "isinf", "finitef", "signbit"), strict=True)
}, dtype=torch.int32, oracle=lambda a: {name: test(a["x"]).int() for name, test in TESTS.items()}, not_interpreted=NONE)


def _counted(a):
    words = [format(value & 0xFFFFFFFF, "032b") for value in a["x"].tolist()]
    found = {
        "zeros": [len(w) - len(w.lstrip("0")) for w in words], "ones": [w.count("1") for w in words],
        "first": [len(w) - len(w.rstrip("0")) + 1 if "1" in w else 0 for w in words],
    }
    return {name: torch.tensor(counts, dtype=torch.int32) for name, counts in found.items()}


elementwise("bit_counts", {"x": integers(N)}, {
    "zeros": "libdevice.clz(a)", "ones": "libdevice.popc(a)", "first": "libdevice.ffs(a)",
}, dtype=torch.int32, oracle=_counted, not_interpreted=NONE)
