"""Copies x into the result with torch (copies are allowed), then adds y to the result in place."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_onto(out_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(out_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask), mask=mask)


def add(x, y):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    out.copy_(x)
    y = y.contiguous()
    if out.numel():
        add_onto[(triton.cdiv(out.numel(), 1024),)](out, y, out.numel(), 1024)
    return out
