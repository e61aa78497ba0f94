"""5. A table in tiles: fill in the TODOs, then run `gradekit check` in this folder. README.md explains the task."""

import torch
import triton
import triton.language as tl


@triton.jit
def outer_product_kernel(x_ptr, y_ptr, out_ptr, M, N, BLOCK: tl.constexpr):
    """Writes one tile of the table."""
    # TODO: rows from program_id(0), columns from program_id(1); then as before.


def outer_product(x, y):
    """Return max(x[m] * y[n], 0) as a new [M, N] tensor (float32)."""
    (M,), (N,) = x.shape, y.shape
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    outer_product_kernel[(triton.cdiv(M, 32), triton.cdiv(N, 32))](x, y, out, M, N, BLOCK=32)
    return out
