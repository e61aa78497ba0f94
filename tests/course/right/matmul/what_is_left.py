"""A tile of c for each program, on a grid of two axes; the pointers walk along K."""

import torch
import triton
import triton.language as tl


@triton.jit
def mm_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, s_am, s_ak, s_bk, s_bn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    col = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    pa = a_ptr + row[:, None].to(tl.int64) * s_am + k[None, :].to(tl.int64) * s_ak
    pb = b_ptr + k[:, None].to(tl.int64) * s_bk + col[None, :].to(tl.int64) * s_bn
    total = tl.zeros((BM, BN), tl.float32)
    left = K
    while left > 0:
        ta = tl.load(pa, mask=(row[:, None] < M) & (k[None, :] < left), other=0.0)
        tb = tl.load(pb, mask=(k[:, None] < left) & (col[None, :] < N), other=0.0)
        total = tl.dot(ta, tb, total, input_precision="ieee")
        pa += BK * s_ak
        pb += BK * s_bk
        left -= BK
    inside = (row[:, None] < M) & (col[None, :] < N)
    tl.store(c_ptr + row[:, None].to(tl.int64) * N + col[None, :], total.to(c_ptr.dtype.element_ty), mask=inside)


def matmul(a, b):
    M, K = a.shape
    N = b.shape[1]
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    BM, BN, BK = 32, 16, 64
    grid = (triton.cdiv(M, BM), triton.cdiv(N, BN))
    mm_kernel[grid](a, b, c, M, N, K, a.stride(0), a.stride(1), b.stride(0), b.stride(1), BM=BM, BN=BN, BK=BK)
    return c
