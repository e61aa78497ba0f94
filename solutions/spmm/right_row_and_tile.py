"""The plain way: a program for each row and each 32 columns."""

import torch
import triton
import triton.language as tl


@triton.jit
def spmm_kernel(
    crow_ptr, col_ptr, val_ptr, b_ptr, out_ptr, s_crow, s_col, s_val, s_bk, s_bn, K, N,
    BLOCK_E: tl.constexpr, BLOCK_N: tl.constexpr,
):
    s_bk = tl.cast(s_bk, tl.int64)
    row = tl.program_id(0)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    start = tl.load(crow_ptr + row * s_crow)
    end = tl.load(crow_ptr + (row + 1) * s_crow)
    acc = tl.zeros((BLOCK_N,), dtype=tl.float32)
    for i in range(start, end, BLOCK_E):
        e = i + tl.arange(0, BLOCK_E)
        k = tl.load(col_ptr + e * s_col, mask=e < end, other=0)
        v = tl.load(val_ptr + e * s_val, mask=e < end, other=0.0)
        mask = (e < end)[:, None] & (n < N)[None, :]
        b = tl.load(b_ptr + k[:, None] * s_bk + n[None, :] * s_bn, mask=mask, other=0.0)
        acc += tl.sum(v.to(tl.float32)[:, None] * b.to(tl.float32), axis=0)
    tl.store(out_ptr + row * N + n, acc, mask=n < N)


def spmm(crow, col, values, dense):
    M, (K, N) = crow.numel() - 1, dense.shape
    out = torch.empty((M, N), dtype=dense.dtype, device=dense.device)
    spmm_kernel[(M, triton.cdiv(N, 32))](
        crow, col, values, dense, out, crow.stride(0), col.stride(0), values.stride(0), *dense.stride(), K, N,
        BLOCK_E=16, BLOCK_N=32,
    )
    return out
