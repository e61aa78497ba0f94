"""A program for each row and each tile of columns; it gathers a few of the row's elements at a time."""

import torch
import triton
import triton.language as tl


@triton.jit
def csr_kernel(
    crow_ptr, col_ptr, val_ptr, b_ptr, y_ptr, n, s_crow, s_col, s_val, s_bk, s_bn, E: tl.constexpr, W: tl.constexpr
):
    i = tl.program_id(0)
    j = tl.program_id(1) * W + tl.arange(0, W)
    lo = tl.load(crow_ptr + i.to(tl.int64) * s_crow)
    hi = tl.load(crow_ptr + (i + 1).to(tl.int64) * s_crow)
    acc = tl.zeros((W,), tl.float32)
    e = lo + tl.arange(0, E)
    for _ in range(0, tl.cdiv(hi - lo, E)):
        live = e < hi
        k = tl.load(col_ptr + e.to(tl.int64) * s_col, mask=live, other=0)
        v = tl.load(val_ptr + e.to(tl.int64) * s_val, mask=live, other=0.0).to(tl.float32)
        where = k[:, None].to(tl.int64) * s_bk + j[None, :].to(tl.int64) * s_bn
        b = tl.load(b_ptr + where, mask=live[:, None] & (j[None, :] < n), other=0.0).to(tl.float32)
        acc += tl.sum(v[:, None] * b, axis=0)
        e += E
    tl.store(y_ptr + i.to(tl.int64) * n + j, acc, mask=j < n)


def spmm(crow, col, values, dense):
    m = crow.shape[0] - 1
    n = dense.shape[1]
    y = torch.empty((m, n), dtype=dense.dtype, device=dense.device)
    grid = (m, triton.cdiv(n, 64))
    csr_kernel[grid](
        crow, col, values, dense, y, n,
        crow.stride(0), col.stride(0), values.stride(0), dense.stride(0), dense.stride(1), E=8, W=64,
    )
    return y
