"""CSR times dense: a program of a single warp for two rows and a tile of columns; long rows get larger programs."""

import torch
import triton
import triton.language as tl

# solution:
ROWS = 2
"""Rows of a program, one after the other: with one alone, starting the programs would take as long as all the rest."""

LONG = 96
"""A row of more elements is left to `long_rows_kernel`: one warp would still be at it when all others are done."""


@triton.jit
def product(
    begin, end, n, col_ptr, values_ptr, dense_ptr, col_stride, values_stride, dense_stride_k, dense_stride_n, N,
    BLOCK_E: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Columns n of the row whose elements are those from begin to end. There may be none at all: then they are 0."""
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
    return tl.sum(sums, axis=0)


@triton.jit
def rows_kernel(
    crow_ptr, col_ptr, values_ptr, dense_ptr, out_ptr, owner_ptr,
    crow_stride, col_stride, values_stride, dense_stride_k, dense_stride_n, M, N,
    ROWS: tl.constexpr, LONG: tl.constexpr, BLOCK_E: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Program (i, j): BLOCK_N columns of rows i * ROWS and on; and whose the first of each piece of LONG elements is."""
    n = (tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)
    first = tl.program_id(0) * ROWS
    for i in range(first, min(first + ROWS, M)):
        row = i.to(tl.int64)
        begin, end = tl.load(crow_ptr + row * crow_stride), tl.load(crow_ptr + (row + 1) * crow_stride)
        if end - begin <= LONG:
            sums = product(
                begin, end, n, col_ptr, values_ptr, dense_ptr, col_stride, values_stride,
                dense_stride_k, dense_stride_n, N, BLOCK_E, BLOCK_N,
            )  # fmt: skip
            tl.store(out_ptr + row * N + n, sums, mask=n < N)
        if tl.program_id(1) == 0:
            for piece in range(tl.cdiv(begin, LONG), tl.cdiv(end, LONG)):
                tl.store(owner_ptr + piece, i)


@triton.jit
def long_rows_kernel(
    crow_ptr, col_ptr, values_ptr, dense_ptr, out_ptr, owner_ptr,
    crow_stride, col_stride, values_stride, dense_stride_k, dense_stride_n, N,
    LONG: tl.constexpr, BLOCK_E: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Program (i, j): BLOCK_N columns of the row that owns piece i, if it is long and owns none before.

    The host does not know which rows are long, or how many; but each of them owns a piece.
    """
    piece = tl.program_id(0)
    row = tl.load(owner_ptr + piece).to(tl.int64)
    begin, end = tl.load(crow_ptr + row * crow_stride), tl.load(crow_ptr + (row + 1) * crow_stride)
    if (end - begin > LONG) & (piece == tl.cdiv(begin, LONG)):
        n = (tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)
        sums = product(
            begin, end, n, col_ptr, values_ptr, dense_ptr, col_stride, values_stride, dense_stride_k, dense_stride_n, N,
            BLOCK_E, BLOCK_N,
        )  # fmt: skip
        tl.store(out_ptr + row * N + n, sums, mask=n < N)


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
    rows, columns, pieces = crow.shape[0] - 1, dense.shape[1], triton.cdiv(col.shape[0], LONG)
    out = torch.empty((rows, columns), dtype=dense.dtype, device=dense.device)
    owner = torch.empty((pieces,), dtype=torch.int32, device=dense.device)
    tensors = crow, col, values, dense, out, owner
    strides = crow.stride(0), col.stride(0), values.stride(0), *dense.stride()
    block_n = min(256, triton.next_power_of_2(columns))
    rows_kernel[(triton.cdiv(rows, ROWS), triton.cdiv(columns, block_n))](
        *tensors, *strides, rows, columns,
        ROWS=ROWS, LONG=LONG, BLOCK_E=min(32, 512 // block_n), BLOCK_N=block_n, num_warps=1,
    )  # fmt: skip
    block_n = min(64, block_n)
    if pieces:
        long_rows_kernel[(pieces, triton.cdiv(columns, block_n))](
            *tensors, *strides, columns, LONG=LONG, BLOCK_E=64, BLOCK_N=block_n, num_warps=8
        )
    return out
    # student:
    # # TODO: allocate the result, choose tile sizes and a grid, launch, return the result.
    # raise NotImplementedError("spmm is not written yet: fill in the TODOs in this file, and delete this line")
    # end
