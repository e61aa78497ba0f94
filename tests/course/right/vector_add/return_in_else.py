"""Whole tiles go without a mask; what is left over has one, and a program with nothing left returns."""

import torch
import triton
import triton.language as tl


@triton.jit
def sum_kernel(a_ptr, b_ptr, sum_ptr, count, whole_tiles, TILE: tl.constexpr):
    tile = tl.program_id(0).to(tl.int64)
    places = tile * TILE + tl.arange(0, TILE)
    if tile < whole_tiles:
        total = tl.load(a_ptr + places) + tl.load(b_ptr + places)
        tl.store(sum_ptr + places, total)
    else:
        left = count - tile * TILE
        if left <= 0:
            return
        here = tl.arange(0, TILE) < left
        total = tl.load(a_ptr + places, mask=here) + tl.load(b_ptr + places, mask=here)
        tl.store(sum_ptr + places, total, mask=here)


def add(x, y):
    left, right = x.contiguous(), y.contiguous()
    total = torch.empty_like(left)
    tiles = triton.cdiv(total.numel(), 512) + 1  # the last has nothing to do
    sum_kernel[(tiles,)](left, right, total, total.numel(), total.numel() // 512, TILE=512)
    return total
