"""Scans: sums, products and combinations of one's own, forwards and backwards, over every axis."""

import torch
import triton
import triton.language as tl

from corpus.case import case, filled, integers, normal

R, C = 8, 16


@case(across=filled(R, C), down=filled(R, C), back=filled(R, C), x=normal(R, C), R=R, C=C, tolerance=1e-6)
@case(name="int16", across=filled(R, C, dtype=torch.int32), down=filled(R, C, dtype=torch.int32),
      back=filled(R, C, dtype=torch.int32), x=integers(R, C, dtype=torch.int16), R=R, C=C)  # fmt: skip
@triton.jit
def running_sums(across, down, back, x, R: tl.constexpr, C: tl.constexpr):
    at = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    a = tl.load(x + at)
    tl.store(across + at, tl.cumsum(a, 1))
    tl.store(down + at, tl.cumsum(a, 0))
    tl.store(back + at, tl.cumsum(a, 1, reverse=True))


@case(out=filled(R, C), back=filled(R, C), x=normal(R, C), R=R, C=C, tolerance=1e-6)
@triton.jit
def running_products(out, back, x, R: tl.constexpr, C: tl.constexpr):
    at = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    a = tl.load(x + at)
    tl.store(out + at, tl.cumprod(a, axis=1))
    tl.store(back + at, tl.cumprod(a, 0, reverse=True))


@triton.jit
def _larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def _linear(slope_a, shift_a, slope_b, shift_b):
    """x -> slope * x + shift, the first map and then the second: associative, but not commutative."""
    return slope_a * slope_b, shift_a * slope_b + shift_b


def _recurrence(a):
    value, found = torch.zeros(R, dtype=torch.float64), []
    for k in range(C):
        value = value * a["x"][:, k].double() + a["y"][:, k].double()
        found.append(value)
    back, found_back = torch.zeros(R, dtype=torch.float64), []
    for k in reversed(range(C)):
        back = back * a["x"][:, k].double() + a["y"][:, k].double()
        found_back.insert(0, back)
    return {
        "top": a["x"].cummax(1).values, "out": torch.stack(found, 1).float(),
        "back": torch.stack(found_back, 1).float(),
    }


@case(top=filled(R, C), out=filled(R, C), back=filled(R, C), x=normal(R, C), y=normal(R, C), R=R, C=C, oracle=_recurrence,
      tolerance=1e-6)  # fmt: skip
@triton.jit
def scans_by_hand(top, out, back, x, y, R: tl.constexpr, C: tl.constexpr):
    at = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    a, b = tl.load(x + at), tl.load(y + at)
    tl.store(top + at, tl.associative_scan(a, 1, _larger))
    _slope, shift = tl.associative_scan((a, b), 1, _linear)
    tl.store(out + at, shift)
    _slope, shift = tl.associative_scan((a, b), 1, _linear, reverse=True)
    tl.store(back + at, shift)


@case(out=filled(64, dtype=torch.int32), n=filled(1, dtype=torch.int32), x=integers(64, low=-5, high=5), N=64)
@triton.jit
def compaction(out, n, x, N: tl.constexpr):
    a = tl.load(x + tl.arange(0, N))
    keep = (a > 0).to(tl.int32)
    at = tl.cumsum(keep, 0) - keep
    tl.store(out + at, a, mask=keep != 0)
    tl.store(n, tl.sum(keep, 0))


@case(out=filled(4, 4, 4), x=normal(4, 4, 4), tolerance=1e-6)
@triton.jit
def scan_of_the_middle_axis(out, x):
    i = tl.arange(0, 4)
    at = i[:, None, None] * 16 + i[None, :, None] * 4 + i[None, None, :]
    tl.store(out + at, tl.cumsum(tl.load(x + at), 1))


@case(out=filled(64, dtype=torch.int64), x=integers(64, dtype=torch.int32), N=64,
      oracle=lambda a: {"out": a["x"].long().cumsum(0)})  # fmt: skip
@triton.jit
def running_sum_in_another_type(out, x, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.cumsum(tl.load(x + i), 0, dtype=tl.int64))
