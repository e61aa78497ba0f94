"""Ragged rows: a mask from data."""

import torch
import triton
import triton.language as tl


@triton.jit
def masked_rows_kernel(x_ptr, lengths_ptr, out_ptr, N, BLOCK: tl.constexpr):
    """Copies one row up to its length, and writes zeros after it."""
    # solution:
    m = tl.program_id(0)
    n = tl.arange(0, BLOCK)
    length = tl.load(lengths_ptr + m)
    x = tl.load(x_ptr + m * N + n, mask=n < length, other=0.0)
    tl.store(out_ptr + m * N + n, x, mask=n < N)
    # student:
    # m = tl.program_id(0)
    # n = tl.arange(0, BLOCK)
    # # TODO: load the row's length; load x up to it (other=?); store the whole row.
    # end


def masked_rows(x, lengths):
    """Return x (float32 [M, N]) with zeros from lengths[m] (int32 [M]) on in row m."""
    M, N = x.shape
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    masked_rows_kernel[(M,)](x, lengths, out, N, BLOCK=triton.next_power_of_2(N))
    return out
