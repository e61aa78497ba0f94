"""Elements are spread over the programs; a matrix without any is left as torch.zeros made it."""

import torch
import triton
import triton.language as tl


@triton.jit
def scatter_kernel(
    row_ends_ptr, col_ptr, values_ptr, dense_ptr, out_ptr,
    s_crow, s_col, s_values, s_k, s_n, rows, width, count,
    HALVINGS: tl.constexpr, WIDTH: tl.constexpr,
):
    """One program for each element and WIDTH columns: the row is the last that begins at the element or before it."""
    element = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1).to(tl.int64) * WIDTH + tl.arange(0, WIDTH)
    first, last = element * 0, element * 0 + rows
    for _ in range(HALVINGS):
        between = (first + last) // 2
        begins = tl.load(row_ends_ptr + between * s_crow) <= element
        first = tl.where(begins, between, first)
        last = tl.where(begins, last, between)
    k = tl.load(col_ptr + element * s_col).to(tl.int64)
    value = tl.load(values_ptr + element * s_values).to(tl.float32)
    inside = columns < width
    row_of_dense = tl.load(dense_ptr + k * s_k + columns * s_n, mask=inside, other=0.0).to(tl.float32)
    tl.atomic_add(out_ptr + first * width + columns, value * row_of_dense, mask=inside)


def spmm(crow, col, values, dense):
    rows, width, count = crow.numel() - 1, dense.shape[1], values.numel()
    total = torch.zeros((rows, width), dtype=torch.float32, device=dense.device)
    if count > 0:
        scatter_kernel[(count, triton.cdiv(width, 64))](
            crow, col, values, dense, total,
            crow.stride(0), col.stride(0), values.stride(0), *dense.stride(), rows, width, count,
            HALVINGS=(2 * rows).bit_length(), WIDTH=64,
        )  # fmt: skip
    return total.to(dense.dtype)
