"""1. A constant added: fill in the TODOs, then run `gradekit check` in this folder. README.md explains the task."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_constant_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    """Adds 10 to a vector that fits into one tile."""
    n = tl.arange(0, BLOCK)
    # TODO: load x where n < N, add 10, store.


def add_constant(x):
    """Return x (float32 [N]) plus 10, as a new tensor."""
    N = x.numel()
    out = torch.empty((N,), dtype=x.dtype, device=x.device)
    add_constant_kernel[(1,)](x, out, N, BLOCK=triton.next_power_of_2(N))
    return out
