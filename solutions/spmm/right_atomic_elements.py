"""One program for each tile of elements, whatever row they belong to; sums meet in float32 by atomic additions."""

import torch
import triton
import triton.language as tl


@triton.jit
def zero_kernel(out_ptr, size, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, 0.0, mask=i < size)


@triton.jit
def add_kernel(crow_ptr, col_ptr, val_ptr, b_ptr, out_ptr, s_crow, s_col, s_val, s_bk, s_bn, N, M, nnz,
               CHUNK: tl.constexpr, BLOCK_N: tl.constexpr):
    s_bk = tl.cast(s_bk, tl.int64)
    n = tl.arange(0, BLOCK_N)
    first = tl.program_id(0) * CHUNK
    row = 0
    for e in range(first, min(first + CHUNK, nnz)):
        while tl.load(crow_ptr + (row + 1) * s_crow) <= e:
            row += 1
        k = tl.load(col_ptr + e * s_col)
        v = tl.load(val_ptr + e * s_val).to(tl.float32)
        b = tl.load(b_ptr + k * s_bk + n * s_bn, mask=n < N, other=0.0).to(tl.float32)
        tl.atomic_add(out_ptr + row * N + n, v * b, mask=n < N)


def spmm(crow, col, values, dense):
    M, N = crow.numel() - 1, dense.shape[1]
    out = torch.empty((M, N), dtype=torch.float32, device=dense.device)
    zero_kernel[(triton.cdiv(M * N, 1024),)](out, M * N, BLOCK=1024)
    add_kernel[(max(1, triton.cdiv(col.numel(), 64)),)](
        crow, col, values, dense, out, crow.stride(0), col.stride(0), values.stride(0), *dense.stride(), N, M, col.numel(),
        CHUNK=64, BLOCK_N=triton.next_power_of_2(N),
    )
    return out.to(dense.dtype)
