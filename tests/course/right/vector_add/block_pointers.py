"""Block pointers where Triton has them, plain pointers elsewhere."""

import torch
import triton
import triton.language as tl

if tuple(map(int, triton.__version__.split(".")[:2])) <= (3, 6):

    @triton.jit
    def add_kernel(x_ptr, y_ptr, z_ptr, n, BLOCK: tl.constexpr):
        start = tl.program_id(0) * BLOCK
        x = tl.make_block_ptr(x_ptr, shape=(n,), strides=(1,), offsets=(start,), block_shape=(BLOCK,), order=(0,))
        y = tl.make_block_ptr(y_ptr, shape=(n,), strides=(1,), offsets=(start,), block_shape=(BLOCK,), order=(0,))
        z = tl.make_block_ptr(z_ptr, shape=(n,), strides=(1,), offsets=(start,), block_shape=(BLOCK,), order=(0,))
        tl.store(z, tl.load(x, boundary_check=(0,)) + tl.load(y, boundary_check=(0,)), boundary_check=(0,))

else:

    @triton.jit
    def add_kernel(x_ptr, y_ptr, z_ptr, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(z_ptr + i, tl.load(x_ptr + i, mask=i < n) + tl.load(y_ptr + i, mask=i < n), mask=i < n)


def add(x, y):
    z = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if z.numel() > 0:
        add_kernel[(triton.cdiv(z.numel(), 256),)](x.contiguous(), y.contiguous(), z, z.numel(), BLOCK=256)
    return z
