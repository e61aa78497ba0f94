# expect: test_scales_what_it_keeps forbidden-op
"""Lets torch draw the numbers."""

import torch
import triton
import triton.language as tl


@triton.jit
def dropout_kernel(x_ptr, random_ptr, out_ptr, n, p, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    keep = tl.load(random_ptr + offsets, mask=mask) >= p
    tl.store(out_ptr + offsets, tl.where(keep, x / (1 - p), 0.0), mask=mask)


def run(x, p, seed):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    torch.manual_seed(seed)
    random = torch.rand(x.shape, device=x.device)
    dropout_kernel[(triton.cdiv(n, 512),)](x, random, out, n, p, BLOCK=512)
    return out


class Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, p, seed):
        ctx.p, ctx.seed = p, seed
        return run(x, p, seed)

    @staticmethod
    def backward(ctx, dout):
        return run(dout, ctx.p, ctx.seed), None, None


def dropout(x, p, seed):
    return Dropout.apply(x, p, seed)
