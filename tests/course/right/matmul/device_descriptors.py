"""Tensor descriptors made in the kernel, with an allocator on the host, over contiguous padded copies."""

from typing import Optional

import torch
import triton
import triton.language as tl


def allocate(size: int, alignment: int, stream: Optional[int]):
    return torch.empty(size, device="cuda", dtype=torch.int8)


triton.set_allocator(allocate)


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, M, N, K, sa, sb, sc, B: tl.constexpr):
    a_desc = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[sa, 1], block_shape=[B, B])
    b_desc = tl.make_tensor_descriptor(b_ptr, shape=[K, N], strides=[sb, 1], block_shape=[B, B])
    c_desc = tl.make_tensor_descriptor(c_ptr, shape=[M, N], strides=[sc, 1], block_shape=[B, B])
    row, col = tl.program_id(0) * B, tl.program_id(1) * B
    acc = tl.zeros((B, B), dtype=tl.float32)
    for k in range(0, K, B):
        acc = tl.dot(a_desc.load([row, k]), b_desc.load([k, col]), acc)
    c_desc.store([row, col], acc.to(c_ptr.dtype.element_ty))


def matmul(a, b):
    M, K = a.shape
    N = b.shape[1]

    def rows_of_16_bytes(rows, cols):
        return torch.empty((rows, (cols + 15) // 16 * 16), dtype=a.dtype, device=a.device)

    a16, b16, c16 = rows_of_16_bytes(M, K), rows_of_16_bytes(K, N), rows_of_16_bytes(M, N)
    a16[:, :K].copy_(a)
    b16[:, :N].copy_(b)
    kernel[(triton.cdiv(M, 32), triton.cdiv(N, 32))](
        a16, b16, c16, M, N, K, a16.stride(0), b16.stride(0), c16.stride(0), B=32
    )
    return c16[:, :N].clone(memory_format=torch.contiguous_format)
