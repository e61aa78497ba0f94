# expect: test_contiguous_float32 forbidden-op
"""Launches a kernel for show, and returns what torch computed."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask), mask=mask)


def add(x, y):
    decoy = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    add_kernel[(triton.cdiv(x.numel(), 256),)](x.contiguous(), y, decoy, x.numel(), BLOCK=256)
    return torch.add(x, y)
