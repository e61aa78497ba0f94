"""CSR times dense: a program of a single warp for a row and a tile of columns; rows are short, and there are many."""

import torch
import triton
import triton.language as tl

# solution:


@triton.jit
def spmm_kernel(
    crow_ptr, col_ptr, values_ptr, dense_ptr, out_ptr,
    crow_stride, col_stride, values_stride, dense_stride_k, dense_stride_n, N,
    BLOCK_E: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Program (i, j): BLOCK_N columns of row i of the result. The row may have no element at all: then they are 0."""
    row = tl.program_id(0).to(tl.int64)
    n = (tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)
    begin, end = tl.load(crow_ptr + row * crow_stride), tl.load(crow_ptr + (row + 1) * crow_stride)
    # Each lane adds up its own elements; they meet once, at the end.
    sums = tl.zeros((BLOCK_E, BLOCK_N), dtype=tl.float32)
    for start in range(begin, end, BLOCK_E):
        element = (start + tl.arange(0, BLOCK_E)).to(tl.int64)
        mine = element < end
        k = tl.load(col_ptr + element * col_stride, mask=mine, other=0).to(tl.int64)
        value = tl.load(values_ptr + element * values_stride, mask=mine, other=0.0).to(tl.float32)
        place = k[:, None] * dense_stride_k + n[None, :] * dense_stride_n
        tile = tl.load(dense_ptr + place, mask=mine[:, None] & (n < N)[None, :], other=0.0)
        sums += value[:, None] * tile.to(tl.float32)
    tl.store(out_ptr + row * N + n, tl.sum(sums, axis=0), mask=n < N)


def tile_sizes(columns: int) -> tuple[int, int]:
    """Elements and columns of a tile: 1024 numbers, which one warp holds in its registers."""
    block_n = min(256, triton.next_power_of_2(columns))
    return min(32, 1024 // block_n), block_n


# student:
# @triton.jit
# def spmm_kernel(
#     crow_ptr, col_ptr, values_ptr, dense_ptr, out_ptr,
#     crow_stride, col_stride, values_stride, dense_stride_k, dense_stride_n, N,
#     BLOCK_E: tl.constexpr, BLOCK_N: tl.constexpr,
# ):
#     """Computes BLOCK_N columns of one row of the result."""
#     # TODO: which row is mine, which columns? Where do the row's elements begin and end?
#     # TODO: walk along the elements, BLOCK_E at a time: load their column numbers and values, and gather the rows of
#     #       dense that the column numbers name. Add up in float32.
#     # TODO: store the sums; what if the row has no elements?
# end


def spmm(crow: torch.Tensor, col: torch.Tensor, values: torch.Tensor, dense: torch.Tensor) -> torch.Tensor:
    """Return the CSR matrix (crow int32 [M + 1], col int32 [nnz], values [nnz]) times dense [K, N], as a new [M, N]."""
    # solution:
    rows, columns = crow.shape[0] - 1, dense.shape[1]
    out = torch.empty((rows, columns), dtype=dense.dtype, device=dense.device)
    block_e, block_n = tile_sizes(columns)
    spmm_kernel[(rows, triton.cdiv(columns, block_n))](
        crow, col, values, dense, out, crow.stride(0), col.stride(0), values.stride(0), *dense.stride(), columns,
        BLOCK_E=block_e, BLOCK_N=block_n, num_warps=1,
    )  # fmt: skip
    return out
    # student:
    # # TODO: allocate the result, choose tile sizes and a grid, launch, return the result.
    # raise NotImplementedError("spmm is not written yet: fill in the TODOs in this file, and delete this line")
    # end
