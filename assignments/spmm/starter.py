"""Sparse times dense: fill in the TODOs, then run `gradekit check` in this folder. README.md explains the task."""

import torch
import triton
import triton.language as tl


@triton.jit
def spmm_kernel(
    crow_ptr, col_ptr, values_ptr, dense_ptr, out_ptr,
    crow_stride, col_stride, values_stride, dense_stride_k, dense_stride_n, N,
    BLOCK_E: tl.constexpr, BLOCK_N: tl.constexpr,
):
    """Computes BLOCK_N columns of one row of the result."""
    # TODO: which row is mine, which columns? Where do the row's elements begin and end?
    # TODO: walk along the elements, BLOCK_E at a time: load their column numbers and values, and gather the rows of
    #       dense that the column numbers name. Add up in float32.
    # TODO: store the sums; what if the row has no elements?


def spmm(crow: torch.Tensor, col: torch.Tensor, values: torch.Tensor, dense: torch.Tensor) -> torch.Tensor:
    """Return the CSR matrix (crow int32 [M + 1], col int32 [nnz], values [nnz]) times dense [K, N], as a new [M, N]."""
    # TODO: allocate the result, choose tile sizes and a grid, launch, return the result.
    raise NotImplementedError("spmm is not written yet: fill in the TODOs in this file, and delete this line")
