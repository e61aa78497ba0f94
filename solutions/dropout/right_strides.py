"""Finds an element's place in memory from its number, and copies nothing."""

import torch
import triton
import triton.language as tl


@triton.jit
def dropout_kernel(x_ptr, out_ptr, n, p, seed, n1, n2, n3, s0, s1, s2, s3, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    place = i % n3 * s3 + i // n3 % n2 * s2 + i // n3 // n2 % n1 * s1 + i // n3 // n2 // n1 * s0
    x = tl.load(x_ptr + place, mask=mask).to(tl.float32)
    tl.store(out_ptr + i, tl.where(tl.rand(seed, i) >= p, x / (1 - p), 0.0), mask=mask)


def run(x, p, seed):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n = x.numel()
    sizes = [1] * (4 - x.dim()) + list(x.shape)
    strides = [0] * (4 - x.dim()) + list(x.stride())
    dropout_kernel[(triton.cdiv(n, 512),)](x, out, n, p, seed, *sizes[1:], *strides, BLOCK=512)
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
