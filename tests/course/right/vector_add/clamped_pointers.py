"""Instead of masking the loads, clamps their offsets to the last element; only the store is masked."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    safe = tl.minimum(offsets, n - 1)
    total = tl.load(x_ptr + safe) + tl.load(y_ptr + safe)
    tl.store(out_ptr + offsets, total, mask=offsets < n)


def add(x, y):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    add_kernel[[triton.cdiv(out.numel(), 128)]](x.contiguous(), y.contiguous(), out, out.numel(), BLOCK=128)
    return out
