"""Reductions over every axis and with every kind of combination, ties and NaN included."""

import torch
import triton
import triton.language as tl

from corpus.case import case, filled, given, integers, normal, specials

R, C = 16, 32
NAN = float("nan")


@case(rows=filled(R), columns=filled(C), every=filled(1), x=normal(R, C), R=R, C=C, tolerance=1e-6)
@case(name="float16", rows=filled(R, dtype=torch.float16), columns=filled(C, dtype=torch.float16), R=R, C=C,
      every=filled(1, dtype=torch.float16), x=normal(R, C, dtype=torch.float16), tolerance=4e-3)  # fmt: skip
@case(name="int8", rows=filled(R, dtype=torch.int32), columns=filled(C, dtype=torch.int32), R=R, C=C,
      every=filled(1, dtype=torch.int32), x=integers(R, C, dtype=torch.int8))  # fmt: skip
@case(name="float64", rows=filled(R, dtype=torch.float64), columns=filled(C, dtype=torch.float64), R=R, C=C,
      every=filled(1, dtype=torch.float64), x=normal(R, C, dtype=torch.float64), tolerance=1e-14)  # fmt: skip
@triton.jit
def sums(rows, columns, every, x, R: tl.constexpr, C: tl.constexpr):
    r, c = tl.arange(0, R), tl.arange(0, C)
    a = tl.load(x + r[:, None] * C + c[None, :])
    tl.store(rows + r, tl.sum(a, axis=1))
    tl.store(columns + c, tl.sum(a, 0))
    tl.store(every, tl.sum(a))


def _brain_sums(a):
    return {"out": a["x"].float().sum(1).bfloat16(), "top": a["x"].amax(1)}


@case(out=filled(R, dtype=torch.bfloat16), top=filled(R, dtype=torch.bfloat16), x=normal(R, C, dtype=torch.bfloat16), R=R,
      C=C, oracle=_brain_sums, tolerance=8e-3)  # fmt: skip
@triton.jit
def brain_reductions(out, top, x, R: tl.constexpr, C: tl.constexpr):
    r, c = tl.arange(0, R), tl.arange(0, C)
    a = tl.load(x + r[:, None] * C + c[None, :])
    tl.store(out + r, tl.sum(a, 1))
    tl.store(top + r, tl.max(a, 1))


@case(high=filled(C), low=filled(C), kept=filled(R), x=normal(R, C), R=R, C=C)
@case(name="int64", high=filled(C, dtype=torch.int64), low=filled(C, dtype=torch.int64), kept=filled(R, dtype=torch.int64),
      x=integers(R, C, dtype=torch.int64), R=R, C=C)  # fmt: skip
@case(name="uint8", high=filled(C, dtype=torch.uint8), low=filled(C, dtype=torch.uint8), kept=filled(R, dtype=torch.uint8),
      x=integers(R, C, dtype=torch.uint8), R=R, C=C)  # fmt: skip
@triton.jit
def highest_and_lowest(high, low, kept, x, R: tl.constexpr, C: tl.constexpr):
    r, c = tl.arange(0, R), tl.arange(0, C)
    a = tl.load(x + r[:, None] * C + c[None, :])
    tl.store(high + c, tl.max(a, 0))
    tl.store(low + c, tl.min(a, 0))
    tl.store(kept + r[:, None], tl.max(a, 1, keep_dims=True))


@case(high=filled(4), low=filled(4), x=given(1, NAN, 3, -2, 5, 5, -0.0, 0.0, NAN, NAN, NAN, NAN, 2, 1, NAN, 0), R=4, C=4,
      oracle=lambda a: {"high": torch.tensor([3, 5, NAN, 2]), "low": torch.tensor([-2, 0, NAN, 0])})  # fmt: skip
@triton.jit
def extremes_among_nan(high, low, x, R: tl.constexpr, C: tl.constexpr):
    r, c = tl.arange(0, R), tl.arange(0, C)
    a = tl.load(x + r[:, None] * C + c[None, :])
    tl.store(high + r, tl.max(a, 1))
    tl.store(low + r, tl.min(a, 1))


def _leftmost(a):
    x = a["x"]
    top = (x == x.amax(1, keepdim=True)).int().argmax(1)
    low = (x == x.amin(1, keepdim=True)).int().argmax(1)
    return {"top": top.int(), "low": low.int(), "value": x.amax(1), "at": top.int()}


_INDICES = {name: filled(R, dtype=torch.int32) for name in ("top", "low", "at")}


@case(**_INDICES, value=filled(R, dtype=torch.int32), x=integers(R, C, low=0, high=6), R=R, C=C, oracle=_leftmost)
@case(name="float32", **_INDICES, value=filled(R), x=normal(R, C), R=R, C=C, oracle=_leftmost)
@triton.jit
def where_the_extremes_are(top, low, value, at, x, R: tl.constexpr, C: tl.constexpr):
    r, c = tl.arange(0, R), tl.arange(0, C)
    a = tl.load(x + r[:, None] * C + c[None, :])
    tl.store(top + r, tl.argmax(a, 1))
    tl.store(low + r, tl.argmin(a, 1, tie_break_left=True))
    v, k = tl.max(a, 1, return_indices=True)
    tl.store(value + r, v)
    tl.store(at + r, k)


@case(value=filled(R), x=normal(R, C), top=filled(R, dtype=torch.int32), R=R, C=C)
@triton.jit
def any_place_of_the_extreme(value, x, top, R: tl.constexpr, C: tl.constexpr):
    r, c = tl.arange(0, R), tl.arange(0, C)
    a = tl.load(x + r[:, None] * C + c[None, :])
    k = tl.argmax(a, 1, tie_break_left=False)
    tl.store(top + r, k)
    tl.store(value + r, tl.min(a, 1, return_indices=True, return_indices_tie_break_left=False)[0])


@case(out=filled(R, dtype=torch.int32), some=filled(R, dtype=torch.int32), x=integers(R, C), R=R, C=C)
@triton.jit
def bitwise_reductions(out, some, x, R: tl.constexpr, C: tl.constexpr):
    r, c = tl.arange(0, R), tl.arange(0, C)
    a = tl.load(x + r[:, None] * C + c[None, :])
    tl.store(out + r, tl.xor_sum(a, 1))
    tl.store(some + r, tl.reduce_or(a & 0x00FF00FF, 1))


@triton.jit
def _product(a, b):
    return a * b


@triton.jit
def _merge_statistics(mean_a, m2_a, count_a, mean_b, m2_b, count_b):
    count = count_a + count_b
    share = count_b / count
    delta = mean_b - mean_a
    return mean_a + delta * share, m2_a + m2_b + delta * delta * count_a * share, count


def _welford(a):
    return {"out": a["x"].prod(1), "mean": a["x"].mean(1), "spread": a["x"].var(1, correction=0)}


@case(out=filled(R), mean=filled(R), spread=filled(R), x=normal(R, C), R=R, C=C, oracle=_welford, tolerance=2e-6)
@triton.jit
def combined_by_hand(out, mean, spread, x, R: tl.constexpr, C: tl.constexpr):
    r, c = tl.arange(0, R), tl.arange(0, C)
    a = tl.load(x + r[:, None] * C + c[None, :])
    tl.store(out + r, tl.reduce(a, 1, _product))
    zeros, ones = tl.zeros((R, C), tl.float32), tl.full((R, C), 1.0, tl.float32)
    m, s, n = tl.reduce((a, zeros, ones), 1, _merge_statistics)
    tl.store(mean + r, m)
    tl.store(spread + r, s / n)


@triton.jit
def _larger_with_index(a, i, b, j):
    take = (a > b) | ((a == b) & (i > j))
    return tl.where(take, a, b), tl.where(take, i, j)


def _last_place(a):
    x = a["x"]
    at = C - 1 - (x == x.amax(1, keepdim=True)).int().flip(1).argmax(1)
    return {"value": x.amax(1), "at": at.int()}


@case(value=filled(R, dtype=torch.int32), at=filled(R, dtype=torch.int32), x=integers(R, C, low=0, high=5), R=R, C=C,
      oracle=_last_place)  # fmt: skip
@triton.jit
def last_place_of_the_largest(value, at, x, R: tl.constexpr, C: tl.constexpr):
    r, c = tl.arange(0, R), tl.arange(0, C)
    a = tl.load(x + r[:, None] * C + c[None, :])
    v, k = tl.reduce((a, tl.broadcast_to(c[None, :], (R, C))), 1, _larger_with_index)
    tl.store(value + r, v)
    tl.store(at + r, k)


@case(first=filled(4, 8), middle=filled(2, 8), last=filled(2, 4), x=normal(2, 4, 8), tolerance=1e-6)
@triton.jit
def three_axes(first, middle, last, x):
    a, b, c = tl.arange(0, 2), tl.arange(0, 4), tl.arange(0, 8)
    t = tl.load(x + a[:, None, None] * 32 + b[None, :, None] * 8 + c[None, None, :])
    tl.store(first + b[:, None] * 8 + c[None, :], tl.sum(t, 0))
    tl.store(middle + a[:, None] * 8 + c[None, :], tl.max(t, 1))
    tl.store(last + a[:, None] * 4 + b[None, :], tl.min(t, -1))


@case(out=filled(1), count=filled(1, dtype=torch.int32), x=specials(64), N=64, oracle=lambda a: {
      "count": torch.tensor([int((a["x"] > 0).sum())], dtype=torch.int32), "out": a["x"].nan_to_num(0, 0, 0).clamp(-9, 9).double().sum().float()[None]}, tolerance=1e-6)  # fmt: skip
@triton.jit
def count_and_sum(out, count, x, N: tl.constexpr):
    a = tl.load(x + tl.arange(0, N))
    tl.store(count, tl.sum((a > 0).to(tl.int32), 0))
    clean = tl.where(tl.abs(a) < float("inf"), a, 0.0)
    tl.store(out, tl.sum(tl.clamp(clean, -9.0, 9.0), 0))


@case(out=filled(1, dtype=torch.int64), small=filled(1, dtype=torch.int32), x=integers(64, dtype=torch.int32), N=64,
      oracle=lambda a: {"out": a["x"].long().sum()[None], "small": a["x"].sum(dtype=torch.int32)[None]})  # fmt: skip
@triton.jit
def sum_in_another_type(out, small, x, N: tl.constexpr):
    a = tl.load(x + tl.arange(0, N))
    tl.store(out, tl.sum(a, 0, dtype=tl.int64))
    tl.store(small, tl.sum(a, 0))
