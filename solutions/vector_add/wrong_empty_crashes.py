# expect: test_empty exception
"""Divides by the number of programs, of which an empty tensor needs none."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def add(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    programs = min(64, triton.cdiv(out.numel(), 256))
    share = triton.cdiv(out.numel(), programs)
    add_kernel[(programs,)](x, y, out, out.numel(), BLOCK=triton.next_power_of_2(share))
    return out
