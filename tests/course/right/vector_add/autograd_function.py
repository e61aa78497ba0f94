"""Wrapped in a torch.autograd.Function, as a library would have it."""

import torch
import triton
import triton.language as tl


@triton.jit
def _sum(a, b):
    return a + b


@triton.jit
def _add_forward(x_ptr, y_ptr, out_ptr, n: tl.int64, BLOCK: tl.constexpr = 256):
    pid = tl.program_id(0).to(tl.int64)
    offsets = pid * BLOCK + tl.arange(0, BLOCK).to(tl.int64)
    mask = offsets < n
    tl.store(out_ptr + offsets, _sum(tl.load(x_ptr + offsets, mask), tl.load(y_ptr + offsets, mask)), mask)


class _Add(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.shape = x.shape
        out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        with torch.cuda.device(x.device):
            _add_forward[(triton.cdiv(out.numel(), 256),)](x.contiguous(), y.contiguous(), out, out.numel())
        return out

    @staticmethod
    def backward(ctx, grad):
        return grad, grad


def add(x, y):
    return _Add.apply(x, y)
