"""Block pointers where Triton has them, plain pointers elsewhere."""

import torch
import triton
import triton.language as tl

if tuple(map(int, triton.__version__.split(".")[:2])) <= (3, 6):

    @triton.jit
    def softmax_kernel(x_ptr, y_ptr, M, N, sm, sn, BM: tl.constexpr, BN: tl.constexpr):
        row = tl.program_id(0) * BM
        x_block = tl.make_block_ptr(x_ptr, (M, N), (sm, sn), (row, 0), (BM, BN), (1, 0))
        y_block = tl.make_block_ptr(y_ptr, (M, N), (N, 1), (row, 0), (BM, BN), (1, 0))
        x = tl.load(x_block, boundary_check=(0, 1), padding_option="zero").to(tl.float32)
        x = tl.where(tl.arange(0, BN)[None, :] < N, x, float("-inf"))
        e = tl.exp(x - tl.max(x, 1)[:, None])
        tl.store(y_block, (e / tl.sum(e, 1)[:, None]).to(y_ptr.dtype.element_ty), boundary_check=(0, 1))

else:

    @triton.jit
    def softmax_kernel(x_ptr, y_ptr, M, N, sm, sn, BM: tl.constexpr, BN: tl.constexpr):
        row = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
        col = tl.arange(0, BN)[None, :]
        inside = (row < M) & (col < N)
        x = tl.load(x_ptr + row * sm + col * sn, mask=inside, other=0.0).to(tl.float32)
        x = tl.where(col < N, x, float("-inf"))
        e = tl.exp(x - tl.max(x, 1)[:, None])
        tl.store(y_ptr + row * N + col, (e / tl.sum(e, 1)[:, None]).to(y_ptr.dtype.element_ty), mask=inside)


def softmax(x):
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    BN = triton.next_power_of_2(N)
    BM = max(1, 1024 // BN)
    softmax_kernel[(triton.cdiv(M, BM),)](x, y, M, N, x.stride(0), x.stride(1), BM=BM, BN=BN)
    return y
