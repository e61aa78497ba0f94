"""8. Largest to 0: fill in the TODOs, then run `gradekit check` in this folder. README.md explains the task."""

import torch
import triton
import triton.language as tl


@triton.jit
def row_shift_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    """Finds a row's maximum, then takes it away."""
    # TODO: a first loop finds the maximum of row m; a second loads again, takes it away and stores.


def row_shift(x):
    """Return x (float32 [M, N]) with the maximum of each row taken away."""
    M, N = x.shape
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    row_shift_kernel[(M,)](x, out, N, BLOCK=128)
    return out
