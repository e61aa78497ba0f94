# expect: test_memory race
"""Tiles begin half a block apart and add onto the result, so that neighbours update the same elements."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * (BLOCK // 2) + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    out = tl.load(out_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, out + x + y, mask=mask)


def add(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.zeros_like(x)
    add_kernel[(triton.cdiv(out.numel(), 128),)](x, y, out, out.numel(), BLOCK=256)
    return out
