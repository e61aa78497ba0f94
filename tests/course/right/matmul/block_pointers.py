"""Block pointers with tl.advance where Triton has them, plain pointers elsewhere."""

import torch
import triton
import triton.language as tl

if tuple(map(int, triton.__version__.split(".")[:2])) <= (3, 6):

    @triton.jit
    def kernel(a_ptr, b_ptr, c_ptr, M, N, K, sam, sak, sbk, sbn, B: tl.constexpr):
        row, col = tl.program_id(0) * B, tl.program_id(1) * B
        a_block = tl.make_block_ptr(a_ptr, (M, K), (sam, sak), (row, 0), (B, B), (1, 0))
        b_block = tl.make_block_ptr(b_ptr, (K, N), (sbk, sbn), (0, col), (B, B), (1, 0))
        acc = tl.zeros((B, B), dtype=tl.float32)
        for _ in range(0, K, B):
            a = tl.load(a_block, boundary_check=(0, 1), padding_option="zero")
            b = tl.load(b_block, boundary_check=(0, 1), padding_option="zero")
            acc = tl.dot(a, b, acc)
            a_block = tl.advance(a_block, (0, B))
            b_block = tl.advance(b_block, (B, 0))
        c_block = tl.make_block_ptr(c_ptr, (M, N), (N, 1), (row, col), (B, B), (1, 0))
        tl.store(c_block, acc.to(c_ptr.dtype.element_ty), boundary_check=(0, 1))

else:

    @triton.jit
    def kernel(a_ptr, b_ptr, c_ptr, M, N, K, sam, sak, sbk, sbn, B: tl.constexpr):
        m = tl.program_id(0) * B + tl.arange(0, B)[:, None]
        n = tl.program_id(1) * B + tl.arange(0, B)[None, :]
        acc = tl.zeros((B, B), dtype=tl.float32)
        for start in range(0, K, B):
            k = start + tl.arange(0, B)
            a = tl.load(a_ptr + m * sam + k[None, :] * sak, mask=(m < M) & (k[None, :] < K), other=0.0)
            b = tl.load(b_ptr + k[:, None] * sbk + n * sbn, mask=(k[:, None] < K) & (n < N), other=0.0)
            acc = tl.dot(a, b, acc)
        tl.store(c_ptr + m * N + n, acc.to(c_ptr.dtype.element_ty), mask=(m < M) & (n < N))


def matmul(a, b):
    M, K = a.shape
    K, N = b.shape
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    kernel[(triton.cdiv(M, 32), triton.cdiv(N, 32))](a, b, c, M, N, K, *a.stride(), *b.stride(), B=32)
    return c
