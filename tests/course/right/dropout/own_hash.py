"""Draws with a hash of its own: seed and place, mixed well."""

import torch
import triton
import triton.language as tl


@triton.jit
def mixed(h):
    h = (h ^ (h >> 16)) * 0x7FEB352D
    h = (h ^ (h >> 15)) * 0x846CA68B
    return h ^ (h >> 16)


@triton.jit(do_not_specialize=["seed"])
def dropout_kernel(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    key = mixed(mixed(tl.full((), 0, tl.uint32) + seed.to(tl.uint32)) + 0x9E3779B9)
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    keep = (mixed(mixed(offsets.to(tl.uint32)) ^ key) >> 8).to(tl.float32) * (1.0 / (1 << 24)) >= p
    tl.store(out_ptr + offsets, tl.where(keep, x / (1 - p), 0.0), mask=mask)


def run(x, p, seed):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    dropout_kernel[(triton.cdiv(n, 512),)](x, out, n, p, seed, BLOCK=512)
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
