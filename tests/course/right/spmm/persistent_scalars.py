"""Few programs take row after row, and each element of a row by itself, for one strip of columns at a time."""

import torch
import triton
import triton.language as tl

WIDTHS = [triton.Config({"WIDTH": width}, num_warps=warps) for width, warps in ((32, 1), (128, 4))]


@triton.autotune(configs=WIDTHS, key=["columns"])
@triton.jit
def strips_kernel(
    ends_ptr, where_ptr, values_ptr, dense_ptr, out_ptr, rows, columns, stride_k, stride_n, WIDTH: tl.constexpr
):
    row = tl.program_id(0)
    while row < rows:
        first = tl.load(ends_ptr + row)
        end = tl.load(ends_ptr + row + 1)
        for strip in range(0, columns, WIDTH):
            column = strip + tl.arange(0, WIDTH)
            inside = column < columns
            total = tl.zeros((WIDTH,), tl.float32)
            place = first
            while place < end:
                k = tl.load(where_ptr + place).to(tl.int64)
                line = tl.load(dense_ptr + k * stride_k + column * stride_n, mask=inside, other=0.0)
                total += tl.load(values_ptr + place).to(tl.float32) * line.to(tl.float32)
                place += 1
            tl.store(out_ptr + row.to(tl.int64) * columns + column, total, mask=inside)
        row += tl.num_programs(0)


def spmm(crow, col, values, dense):
    rows, columns = crow.numel() - 1, dense.shape[1]
    out = torch.empty((rows, columns), dtype=dense.dtype, device=dense.device)
    strips_kernel[(min(rows, 48),)](
        crow.contiguous(), col.contiguous(), values.contiguous(), dense, out, rows, columns, *dense.stride()
    )
    return out
