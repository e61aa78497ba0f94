"""Matrix multiplication: fill in the TODOs, then run `gradekit check` in this folder. README.md explains the task."""

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    a_stride_m, a_stride_k, b_stride_k, b_stride_n,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    """Computes one BLOCK_M x BLOCK_N tile of c."""
    # TODO: which tile of c is mine?
    # TODO: walk along K in steps of BLOCK_K; load a tile of a and a tile of b (what stands in for what is outside?),
    #       and add their product, tl.dot, to a float32 accumulator.
    # TODO: store the accumulator, as c's dtype.


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return a [M, K] @ b [K, N] as a new tensor of their dtype; strides are any."""
    # TODO: allocate the result, choose tile sizes and a grid, launch, return the result.
    raise NotImplementedError("matmul is not written yet: fill in the TODOs in this file, and delete this line")
