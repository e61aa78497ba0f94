# expect: test_no_mask_in_memory too-much-memory
"""Writes the mask to memory, for the backward pass to read."""

import torch
import triton
import triton.language as tl


@triton.jit
def draw_kernel(mask_ptr, n, p, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(mask_ptr + offsets, tl.rand(seed, offsets) >= p, mask=offsets < n)


@triton.jit
def apply_kernel(x_ptr, mask_ptr, out_ptr, n, p, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside).to(tl.float32)
    keep = tl.load(mask_ptr + offsets, mask=inside)
    tl.store(out_ptr + offsets, tl.where(keep, x / (1 - p), 0.0), mask=inside)


def run(x, mask, p):
    x = x.contiguous()
    out = torch.empty_like(x)
    apply_kernel[(triton.cdiv(x.numel(), 512),)](x, mask, out, x.numel(), p, BLOCK=512)
    return out


class Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, p, seed):
        mask = torch.empty(x.shape, dtype=torch.bool, device=x.device)
        draw_kernel[(triton.cdiv(x.numel(), 512),)](mask, x.numel(), p, seed, BLOCK=512)
        ctx.p = p
        ctx.save_for_backward(mask)
        return run(x, mask, p)

    @staticmethod
    def backward(ctx, dout):
        (mask,) = ctx.saved_tensors
        return run(dout, mask, ctx.p), None, None


def dropout(x, p, seed):
    return Dropout.apply(x, p, seed)
