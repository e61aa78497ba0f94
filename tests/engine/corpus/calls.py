"""Functions that call functions, printing and asserting."""

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
