"""Floating-point arithmetic in every precision, with special values; comparisons, minima, clamping, selection."""

import torch

from corpus.case import each_dtype, elementwise, given, lanes, normal, positive, specials

N = 64
NAN, INF = float("nan"), float("inf")
FLOATS = (torch.float16, torch.float32, torch.float64)
BRAIN = (torch.bfloat16,)
PAIR = {"x": normal(N), "y": normal(N)}


def _arithmetic(a):
    """In torch, operation by operation: the interpreter adds bfloat16 as bit patterns."""
    x, y = a["x"], a["y"]
    return {"added": x + y, "taken": x - y, "times": x * y, "quotient": (x.float() / y.float()).to(x.dtype)}


ARITHMETIC = {"added": "a + b", "taken": "a - b", "times": "a * b", "quotient": "a / b"}
of_floats = lanes("float_arithmetic", ARITHMETIC)
for _dtypes, _oracle in ((FLOATS, None), (BRAIN, _arithmetic)):
    each_dtype(of_floats, _dtypes, [*ARITHMETIC], oracle=_oracle, x=lambda d: specials(N, dtype=d), y=lambda d: normal(N, dtype=d))

elementwise("float_remainder", {"x": normal(N, scale=20), "y": given(*([3.0, -3.0, 0.7, -1.5] * 16))}, {
    "out": "a % b", "rest": "a - b", "minus": "-a",
})

COMPARISONS = {"less": "<", "most": "<=", "more": ">", "least": ">=", "same": "==", "other": "!="}


def _comparisons(a):
    x, y = a["x"], a["y"]
    return {"less": x < y, "most": x <= y, "more": x > y, "least": x >= y, "same": x == y, "other": x != y}


each_dtype(lanes("float_comparisons", {name: f"a {sign} b" for name, sign in COMPARISONS.items()}), FLOATS + BRAIN, [*COMPARISONS],
           16, _comparisons, torch.bool, x=lambda d: given(1, 2, NAN, INF, -INF, 0.0, -0.0, 3, NAN, 1, 2, 3, 4, 5, -1, -2, dtype=d),
           y=lambda d: given(2, 1, 1, INF, INF, -0.0, 0.0, 3, NAN, NAN, 2, -3, 4, 6, -2, -1, dtype=d))


def _extremes(a):
    x, y = a["x"], a["y"]
    return {
        "low": torch.fmin(x, y), "high": torch.fmax(x, y), "low_nan": torch.minimum(x, y),
        "high_nan": torch.maximum(x, y), "clamped": torch.fmin(torch.fmax(x, torch.tensor(-0.5)), torch.tensor(0.75)),
    }


elementwise("extremes", {"x": specials(N), "y": specials(N)}, {
    "low": "tl.minimum(a, b)", "high": "tl.maximum(a, b)", "low_nan": "tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)",
    "high_nan": "tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)", "clamped": "tl.clamp(a, -0.5, 0.75)",
}, oracle=_extremes)
elementwise("clamped_between", {"x": specials(N), "low": normal(N)}, {
    "out": "tl.clamp(a, b, b + 1)", "nan_too": "tl.clamp(a, b, b + 1, propagate_nan=tl.PropagateNan.ALL)",
}, oracle=lambda a: {
    "out": torch.fmin(torch.fmax(a["x"], a["low"]), a["low"] + 1), "nan_too": torch.clamp(a["x"], a["low"], a["low"] + 1),
})
CHOSEN = "tl.where(tl.program_id(0) == 0, tl.where(i % 3 == 0, tl.where(a > b, a, b), 0.0), b)"
elementwise("selection", {"x": specials(N), "y": normal(N)}, {"out": f'tl.where((i < 50) & (b > -1), {CHOSEN}, float("inf"))'})
elementwise("exactly_rounded", PAIR | {"z": positive(N)}, {
    "out": "tl.fma(a, b, c)", "rounded": "tl.div_rn(a, c)", "root": "tl.sqrt_rn(c)",
}, oracle=lambda a: {
    "out": (a["x"].double() * a["y"].double() + a["z"].double()).float(), "rounded": a["x"] / a["z"], "root": a["z"].sqrt(),
}, tolerance=1e-7)
elementwise("scalar_float", {"x": normal(N), "s": 0.1, "t": 3}, {"out": "(a * s + t) / (1 + s * 2) - 1.5 * t"})
HALF = {"x": normal(N, dtype=torch.float16)}
elementwise("mixed_floats", PAIR | HALF, {"out": "a * 2.0 + b * a + i"}, dtype=torch.float16, tolerance=1e-3)
elementwise("half_with_scalars", HALF | {"n": 3}, {"out": "a * n + 0.1"}, dtype=torch.float16)
