"""A single program that loops over everything: slow on a GPU, and right."""

import torch
import triton
from triton import language as tl


@triton.jit
def kernel(x, y, z, n, B: tl.constexpr):
    for start in range(0, n, B):
        i = start + tl.arange(0, B)
        tl.store(z + i, tl.load(x + i, i < n) + tl.load(y + i, i < n), i < n)


def add(x, y):
    z = torch.empty(x.shape, dtype=x.dtype, device="cuda")
    kernel[1, 1, 1](x.contiguous(), y.contiguous(), z, x.numel(), 512)
    return z
