"""Functions that call functions, printing, asserting, and the kernels of tutorials."""

import torch
import triton
import triton.language as tl

from corpus.case import case, filled, integers, normal

N = 32


@triton.jit(noinline=True)
def _polynomial(x, a, b):
    return x * x * a + b


@triton.jit(noinline=True)
def _store_twice(at, value, other):
    tl.store(at, value)
    tl.store(at + other, -value)


@triton.jit(noinline=True)
def _quotient_and_rest(a, b):
    return a // b, a % b


@case(grid=(5,), out=filled(5), twice=filled(10), x=normal(5), a=2.5)
@triton.jit
def functions_not_inlined(out, twice, x, a):
    pid = tl.program_id(0)
    v = tl.load(x + pid)
    tl.store(out + pid, _polynomial(v, a, 1.0) + _polynomial(v, v, v))
    _store_twice(twice + pid, v, 5)


@case(grid=(9,), out=filled(9, dtype=torch.int32), x=integers(9, low=0, high=1000))
@triton.jit
def function_with_two_results(out, x):
    pid = tl.program_id(0)
    total = 0
    for k in range(pid % 3):
        q, r = _quotient_and_rest(tl.load(x + pid) + k, 7)
        total += q * 100 + r
    tl.store(out + pid, total)


@triton.jit
def _scaled(x, s: tl.constexpr = 2):
    return x * s


@triton.jit
def _first_or_second(x, y, first: tl.constexpr):
    if first:
        return x
    return y


@case(out=filled(N), x=normal(N), N=N)
@triton.jit
def helpers(out, x, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    tl.static_assert(N == 32)
    pair = (a, _scaled(a, 3))
    tl.store(out + i, _first_or_second(pair[0], pair[1], False) + _scaled(_scaled(a)))


@triton.jit(noinline=True)
def _only_if_positive(at, v):
    if v < 0:
        return
    tl.store(at, v)


@case(grid=(6,), out=filled(6, dtype=torch.int32), x=integers(6, low=-5, high=5))
@triton.jit
def early_return_in_a_function(out, x):
    pid = tl.program_id(0)
    _only_if_positive(out + pid, tl.load(x + pid))


@case(grid=(3,), out=filled(3, dtype=torch.int32), options={"debug": True})
@triton.jit
def prints_and_asserts(out):
    pid = tl.program_id(0)
    tl.device_print("pid", pid)
    tl.device_print("two of them", pid * 2, pid + 0.5)
    tl.device_assert(pid < 3, "too many")
    tl.store(out + pid, pid)


def _normalized(a):
    x = a["x"].double()
    mean, rstd = x.mean(1, keepdim=True), (x.var(1, correction=0, keepdim=True) + 1e-5).rsqrt()
    out = (x - mean) * rstd * a["w"] + a["b"]
    return {"out": out.float(), "means": mean[:, 0].float(), "rstds": rstd[:, 0].float()}


@case(grid=(4,), out=filled(4, 50), means=filled(4), rstds=filled(4), x=normal(4, 50), w=normal(50), b=normal(50), n=50,
      eps=1e-5, B=32, oracle=_normalized, tolerance=1e-6)  # fmt: skip
@triton.jit
def layer_norm(out, means, rstds, x, w, b, n, eps, B: tl.constexpr):
    row = tl.program_id(0)
    x += row * n
    total = tl.zeros((B,), tl.float32)
    for start in range(0, n, B):
        c = start + tl.arange(0, B)
        total += tl.load(x + c, mask=c < n, other=0.0)
    mean = tl.sum(total, 0) / n
    squares = tl.zeros((B,), tl.float32)
    for start in range(0, n, B):
        c = start + tl.arange(0, B)
        d = tl.where(c < n, tl.load(x + c, mask=c < n, other=0.0) - mean, 0.0)
        squares += d * d
    rstd = 1 / tl.sqrt(tl.sum(squares, 0) / n + eps)
    tl.store(means + row, mean)
    tl.store(rstds + row, rstd)
    for start in range(0, n, B):
        c = start + tl.arange(0, B)
        m = c < n
        v = (tl.load(x + c, mask=m) - mean) * rstd
        tl.store(out + row * n + c, v * tl.load(w + c, mask=m) + tl.load(b + c, mask=m), mask=m)


def _attention(a):
    q, k, v = (a[name].double() for name in "qkv")
    scores = (q @ k.transpose(-1, -2) * 0.125).masked_fill(torch.ones(64, 64).triu(1).bool(), float("-inf"))
    return {"out": (scores.softmax(-1) @ v).float()}


@case(grid=(4, 2), out=filled(2, 64, 16), q=normal(2, 64, 16), k=normal(2, 64, 16), v=normal(2, 64, 16), n=64, D=16, BM=16,
      BN=32, oracle=_attention, tolerance=2e-3)  # fmt: skip
@triton.jit
def causal_attention(out, q, k, v, n, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    i, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    base = tl.program_id(1) * n * D
    queries = tl.load(q + base + i[:, None] * D + d[None, :])
    top = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, (tl.program_id(0) + 1) * BM, BN):
        j = start + tl.arange(0, BN)
        keys = tl.load(k + base + j[None, :] * D + d[:, None])
        scores = tl.dot(queries, keys) * 0.125
        scores = tl.where(i[:, None] >= j[None, :], scores, -float("inf"))
        new_top = tl.maximum(top, tl.max(scores, 1))
        p = tl.exp2((scores - new_top[:, None]) * 1.44269504)
        old = tl.exp2((top - new_top) * 1.44269504)
        total = total * old + tl.sum(p, 1)
        acc = tl.dot(p, tl.load(v + base + j[:, None] * D + d[None, :]), acc * old[:, None])
        top = new_top
    tl.store(out + base + i[:, None] * D + d[None, :], acc / total[:, None])


@triton.jit
def _twice_and_half(x, y):
    return x * 2 + y, (x + y) / 2


@case(out=filled(N), half=filled(N), x=normal(N), y=normal(N), N=N,
      oracle=lambda a: {"out": a["x"] * 2 + a["y"], "half": (a["x"] + a["y"]) / 2},
      not_interpreted="the interpreter has no map_elementwise")  # fmt: skip
@triton.jit
def mapped_elementwise(out, half, x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.map_elementwise(_twice_and_half, tl.load(x + i), tl.load(y + i))
    tl.store(out + i, a)
    tl.store(half + i, b)
