"""Philox random numbers: the interpreter runs the same Python as the compiler, so every bit must agree."""

import torch
import triton
import triton.language as tl

from corpus.case import case, filled

N = 64


@case(
    grid=(2,), whole=filled(2 * N, dtype=torch.int32), uniform=filled(2 * N), bell=filled(2 * N), seed=12345, N=N,
    tolerance=1e-6,
)
@case(name="long seed", grid=(2,), whole=filled(2 * N, dtype=torch.int32), uniform=filled(2 * N), bell=filled(2 * N),
      seed=2**45 + 77, N=N, tolerance=1e-6)  # fmt: skip
@triton.jit
def random_numbers(whole, uniform, bell, seed, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(whole + i, tl.randint(seed, i).to(tl.int32, bitcast=True))
    tl.store(uniform + i, tl.rand(seed, i))
    tl.store(bell + i, tl.randn(seed, i))


@case(out=filled(4, N, dtype=torch.int32), uniform=filled(4, N), bell=filled(4, N), seed=99, N=N, tolerance=1e-6)
@triton.jit
def four_at_a_time(out, uniform, bell, seed, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b, c, d = tl.randint4x(seed, i)
    tl.store(out + i, a.to(tl.int32, bitcast=True))
    tl.store(out + N + i, b.to(tl.int32, bitcast=True))
    tl.store(out + 2 * N + i, c.to(tl.int32, bitcast=True))
    tl.store(out + 3 * N + i, d.to(tl.int32, bitcast=True))
    a, b, c, d = tl.rand4x(seed, i)
    tl.store(uniform + i, a)
    tl.store(uniform + N + i, b)
    tl.store(uniform + 2 * N + i, c)
    tl.store(uniform + 3 * N + i, d)
    a, b, c, d = tl.randn4x(seed, i)
    tl.store(bell + i, a)
    tl.store(bell + N + i, b)
    tl.store(bell + 2 * N + i, c)
    tl.store(bell + 3 * N + i, d)


@case(out=filled(N, dtype=torch.int64), seed=5, N=N)
@triton.jit
def long_offsets(out, seed, N: tl.constexpr):
    i = tl.arange(0, N).to(tl.int64) + 2**40
    tl.store(out + i - 2**40, tl.randint(seed, i).to(tl.int64))


@case(out=filled(N, dtype=torch.int32), c=3, N=N)
@triton.jit
def philox_by_hand(out, c, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b, d, e = tl.philox(42, i, i * 0 + c, i * 0, i * 0, n_rounds=5)
    tl.store(out + i, (a ^ b ^ d ^ e).to(tl.int32, bitcast=True))
