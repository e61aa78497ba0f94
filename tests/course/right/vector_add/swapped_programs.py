"""Neighbouring programs swap their tiles; those with a whole tile need no mask, and return early."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    other = pid ^ 1
    if other < tl.num_programs(0):
        pid = other
    x += pid * BLOCK
    y += pid * BLOCK
    out += pid * BLOCK
    left = n - pid * BLOCK
    at = tl.arange(0, BLOCK)
    if left >= BLOCK:
        tl.store(out + at, tl.load(x + at) + tl.load(y + at))
        return
    total = tl.load(x + at, mask=at < left) + tl.load(y + at, mask=at < left)
    tl.store(out + at, total, mask=at < left)


def add(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    programs = triton.cdiv(out.numel(), 64)
    for _ in range(1 if programs else 0):
        add_kernel[(programs, 1)](x, y, out, out.numel(), BLOCK=64, num_warps=1)
    return out
