"""Copies the inputs into zero-padded contiguous ones, so that the kernel needs no mask at all, and slices the result."""

import torch
import triton
import triton.language as tl

TILE = 32


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, N, K, T: tl.constexpr):
    m = tl.program_id(0) * T + tl.arange(0, T)[:, None]
    n = tl.program_id(1) * T + tl.arange(0, T)[None, :]
    a_ptrs = a_ptr + m * K + tl.arange(0, T)[None, :]
    b_ptrs = b_ptr + tl.arange(0, T)[:, None] * N + n
    acc = tl.zeros((T, T), dtype=tl.float32)
    for _ in range(K // T):
        acc += tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), allow_tf32=False)
        a_ptrs += T
        b_ptrs += T * N
    tl.store(c_ptr + m * N + n, acc)


def padded(x):
    rows, cols = (triton.cdiv(size, TILE) * TILE for size in x.shape)
    out = torch.zeros((rows, cols), dtype=x.dtype, device=x.device)
    out[: x.shape[0], : x.shape[1]] = x
    return out


def matmul(a, b):
    M, N = a.shape[0], b.shape[1]
    a, b = padded(a), padded(b)
    c = torch.empty((a.shape[0], b.shape[1]), dtype=a.dtype, device=a.device)
    kernel[(c.shape[0] // TILE, c.shape[1] // TILE)](a, b, c, b.shape[1], a.shape[1], T=TILE)
    return c[:M, :N].contiguous()
