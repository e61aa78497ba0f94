"""Histogram: a program counts several tiles on chip where there are few bins, and adds them with one atomic each."""

import torch
import triton
import triton.language as tl

# solution:
FEW = 1024
"""Up to so many bins, a program counts on chip; more would not fit beside its tile."""


@triton.jit
def counted_kernel(x_ptr, out_ptr, N, bins, x_stride, BLOCK: tl.constexpr, BINS: tl.constexpr):
    """Counts every so manieth tile of BLOCK numbers in registers, then adds the counts to the result."""
    b = tl.arange(0, BINS)
    counts = tl.zeros((BINS,), dtype=tl.int32)
    for start in range(tl.program_id(0) * BLOCK, N, tl.num_programs(0) * BLOCK):
        n = start + tl.arange(0, BLOCK).to(tl.int64)
        x = tl.load(x_ptr + n * x_stride, mask=n < N, other=0)
        extra = tl.sum((n >= N).to(tl.int32), axis=0)
        counts += tl.histogram(x, BINS) - tl.where(b == 0, extra, 0)  # lanes past the end hold a 0
    tl.atomic_add(out_ptr + b, counts, mask=b < bins)


@triton.jit
def atomic_kernel(x_ptr, out_ptr, N, x_stride, BLOCK: tl.constexpr):
    """Adds 1 to the counter of each number of one tile: where there are many bins, few lanes meet."""
    n = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + n * x_stride, mask=n < N)
    tl.atomic_add(out_ptr + x, 1, mask=n < N)


# student:
# @triton.jit
# def histogram_kernel(x_ptr, out_ptr, N, x_stride, BLOCK: tl.constexpr):
#     """Counts the numbers of one tile."""
#     # TODO: which numbers are mine? Load them with a mask.
#     # TODO: add 1 to the counter of each, so that no other program can come between.
# end


def histogram(x: torch.Tensor, bins: int) -> torch.Tensor:
    """Return how often each number from 0 to bins - 1 stands in x (int32 [N]), as a new int32 [bins]."""
    # solution:
    out = torch.zeros((bins,), dtype=torch.int32, device=x.device)
    (N,), block = x.shape, 1024
    tiles = triton.cdiv(N, block)
    if bins > FEW:
        atomic_kernel[(tiles,)](x, out, N, x.stride(0), BLOCK=block)
    else:
        BINS = max(16, triton.next_power_of_2(bins))
        counted_kernel[(min(tiles, 512),)](x, out, N, bins, x.stride(0), BLOCK=block, BINS=BINS)
    return out
    # student:
    # # TODO: allocate counters that begin with 0, choose BLOCK, launch, return them.
    # raise NotImplementedError("histogram is not written yet: fill in the TODOs in this file, and delete this line")
    # end
