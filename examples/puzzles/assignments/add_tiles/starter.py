"""2. Many tiles: fill in the TODOs, then run `gradekit check` in this folder. README.md explains the task."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_tiles_kernel(x_ptr, y_ptr, out_ptr, N, BLOCK: tl.constexpr):
    """Adds one tile of two vectors."""
    # TODO: n counts from where? Then load both, add, store.


def add_tiles(x, y):
    """Return x + y (float32 [N] each), as a new tensor."""
    N = x.numel()
    out = torch.empty((N,), dtype=x.dtype, device=x.device)
    add_tiles_kernel[(triton.cdiv(N, 128),)](x, y, out, N, BLOCK=128)
    return out
