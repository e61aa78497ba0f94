"""Matrix products in every dtype and precision, with and without an accumulator, batched."""

import torch
import triton
import triton.language as tl

from corpus.case import case, filled, integers, normal

M, N, K = 16, 32, 64


def _small(dtype, *shape):
    """Small floats from normal values."""
    return lambda generator: torch.randn(shape, generator=generator).to(dtype)


@triton.jit
def product(out, x, y, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a, b = tl.load(x + m[:, None] * K + k[None, :]), tl.load(y + k[:, None] * N + n[None, :])
    tl.store(out + m[:, None] * N + n[None, :], tl.dot(a, b))


def _exact(a):
    return {"out": (a["x"].double() @ a["y"].double()).to(a["out"].dtype)}


for _dtype in (torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2):
    case(name=str(_dtype)[6:], out=filled(M, N), x=_small(_dtype, M, K), y=_small(_dtype, K, N), M=M, N=N, K=K,
         oracle=_exact, tolerance=1e-6)(product)  # fmt: skip
case(name="int8", out=filled(M, N, dtype=torch.int32), x=integers(M, K, dtype=torch.int8), y=integers(K, N, dtype=torch.int8),
     M=M, N=N, K=K, oracle=_exact)(product)  # fmt: skip


def _tf32(x):
    """Ten bits of mantissa: Triton hands float32 to the tensor cores as it is, and they ignore the lower bits.

    (The interpreter multiplies in full precision.)
    """
    return (x.view(torch.int32) & ~0x1FFF).view(torch.float32)


def _as_tf32(a):
    return {"out": (_tf32(a["x"]).double() @ _tf32(a["y"]).double()).float()}


@triton.jit
def product_of_float32(out, x, y, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, HOW: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a, b = tl.load(x + m[:, None] * K + k[None, :]), tl.load(y + k[:, None] * N + n[None, :])
    tl.store(out + m[:, None] * N + n[None, :], tl.dot(a, b, input_precision=HOW))


for _how, _oracle in (("ieee", _exact), ("tf32x3", _exact), ("tf32", _as_tf32)):
    case(name=_how, out=filled(M, N), x=normal(M, K), y=normal(K, N), M=M, N=N, K=K, HOW=_how, oracle=_oracle,
         tolerance=1e-6)(product_of_float32)  # fmt: skip


@case(name="float64", out=filled(M, M, dtype=torch.float64), x=normal(M, M, dtype=torch.float64),
      y=normal(M, M, dtype=torch.float64), M=M, N=M, K=M, oracle=_exact, tolerance=1e-14)  # fmt: skip
@triton.jit
def product_of_float64(out, x, y, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a, b = tl.load(x + m[:, None] * K + k[None, :]), tl.load(y + k[:, None] * N + n[None, :])
    tl.store(out + m[:, None] * N + n[None, :], tl.dot(a, b, out_dtype=tl.float64))


def _accumulated(a):
    return {"out": (a["x"].double() @ a["y"].double() * 2 + a["c"].double()).to(a["out"].dtype)}


@case(out=filled(M, N), x=normal(M, K, dtype=torch.float16), y=normal(K, N, dtype=torch.float16), c=normal(M, N), M=M, N=N,
      K=K, oracle=_accumulated, tolerance=1e-6)  # fmt: skip
@triton.jit
def accumulated(out, x, y, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a, b = tl.load(x + m[:, None] * K + k[None, :]), tl.load(y + k[:, None] * N + n[None, :])
    acc = tl.load(c + m[:, None] * N + n[None, :])
    acc = tl.dot(a, b, acc)
    acc += tl.dot(a, b)
    tl.store(out + m[:, None] * N + n[None, :], acc)


@case(out=filled(M, N, dtype=torch.float16), x=normal(M, K, dtype=torch.float16), y=normal(K, N, dtype=torch.float16), M=M,
      N=N, K=K, oracle=_exact, tolerance=2e-3)  # fmt: skip
@triton.jit
def accumulated_in_float16(out, x, y, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a, b = tl.load(x + m[:, None] * K + k[None, :]), tl.load(y + k[:, None] * N + n[None, :])
    tl.store(out + m[:, None] * N + n[None, :], tl.dot(a, b, out_dtype=tl.float16))


@case(out=filled(4, 16, 16), x=normal(4, 16, 32, dtype=torch.float16), y=normal(4, 32, 16, dtype=torch.float16),
      oracle=_exact, tolerance=1e-6)  # fmt: skip
@triton.jit
def batch_of_products(out, x, y):
    b, m, k = tl.arange(0, 4)[:, None, None], tl.arange(0, 16), tl.arange(0, 32)
    p = tl.load(x + b * 512 + m[None, :, None] * 32 + k[None, None, :])
    q = tl.load(y + b * 512 + k[None, :, None] * 16 + m[None, None, :])
    tl.store(out + b * 256 + m[None, :, None] * 16 + m[None, None, :], tl.dot(p, q))


@case(out=filled(M, M), x=normal(M, K, dtype=torch.float16), M=M, K=K,
      oracle=lambda a: {"out": (a["x"].double() @ a["x"].double().T).float()}, tolerance=1e-6)  # fmt: skip
@triton.jit
def product_with_its_transpose(out, x, M: tl.constexpr, K: tl.constexpr):
    m, k = tl.arange(0, M), tl.arange(0, K)
    a = tl.load(x + m[:, None] * K + k[None, :])
    tl.store(out + m[:, None] * M + m[None, :], tl.dot(a, tl.trans(a)))


@case(out=filled(M, N), x=normal(M, K, dtype=torch.float16), y=normal(K, N, dtype=torch.float16), M=M, N=N, K=K,
      oracle=_exact, tolerance=1e-6)  # fmt: skip
@triton.jit
def product_by_hand(out, x, y, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a, b = tl.load(x + m[:, None] * K + k[None, :]), tl.load(y + k[:, None] * N + n[None, :])
    p = a[:, :, None].to(tl.float32) * b[None, :, :].to(tl.float32)
    tl.store(out + m[:, None] * N + n[None, :], tl.sum(p, 1))
