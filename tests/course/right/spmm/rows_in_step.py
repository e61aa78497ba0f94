"""Sixteen rows to a program, in step: as many steps as the longest of them has elements."""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(CROW, COL, VAL, B, C, sc, sk, sv, sb0, sb1, M, N, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    cols = tl.program_id(0) * BN + tl.arange(0, BN)
    inside = rows < M
    first = tl.load(CROW + rows * sc, mask=inside, other=0)
    last = tl.load(CROW + (rows + 1) * sc, mask=inside, other=0)
    acc = tl.zeros([BM, BN], tl.float32)
    for step in range(tl.max(last - first, 0)):
        at = first + step
        live = at < last
        k = tl.load(COL + at * sk, mask=live, other=0).to(tl.int64)
        v = tl.load(VAL + at * sv, mask=live, other=0).to(tl.float32)
        b = tl.load(B + k[:, None] * sb0 + cols[None, :] * sb1, mask=live[:, None] & (cols[None, :] < N), other=0)
        acc += v[:, None] * b
    tl.store(C + rows[:, None] * N + cols[None, :], acc.to(C.dtype.element_ty), mask=inside[:, None] & (cols[None, :] < N))


def spmm(crow, col, values, dense):
    M, N = crow.shape[0] - 1, dense.shape[1]
    c = dense.new_empty(M, N)
    kernel[(triton.cdiv(N, 64), triton.cdiv(M, 16))](
        crow, col, values, dense, c, crow.stride(0), col.stride(0), values.stride(0), *dense.stride(), M, N, BM=16, BN=64
    )
    return c
