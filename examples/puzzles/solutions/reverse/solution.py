"""Backwards: an address is a number: compute it."""

import torch
import triton
import triton.language as tl


@triton.jit
def reverse_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    """Writes one tile of the reversed vector."""
    # solution:
    n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + (N - 1 - n), mask=n < N)
    tl.store(out_ptr + n, x, mask=n < N)
    # student:
    # n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    # # TODO: element n of the result is which element of x?
    # end


def reverse(x):
    """Return x (float32 [N]) from its last element to its first."""
    N = x.numel()
    out = torch.empty((N,), dtype=x.dtype, device=x.device)
    reverse_kernel[(triton.cdiv(N, 128),)](x, out, N, BLOCK=128)
    return out
