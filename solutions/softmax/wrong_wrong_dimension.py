# expect: test_contiguous_float32 wrong-values
"""Normalizes columns instead of rows."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, M, N, stride_xm, stride_xn, BLOCK: tl.constexpr):
    column = tl.program_id(0)
    rows = tl.arange(0, BLOCK)
    mask = rows < M
    x = tl.load(x_ptr + rows * stride_xm + column * stride_xn, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    total = tl.sum(e, axis=0)
    tl.store(out_ptr + rows * N + column, e / total, mask=mask)


def softmax(x):
    M, N = x.shape
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    softmax_kernel[(N,)](x, out, M, N, x.stride(0), x.stride(1), BLOCK=triton.next_power_of_2(M))
    return out
