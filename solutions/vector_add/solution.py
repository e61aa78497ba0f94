"""Elementwise addition over views of any layout, in one launch and with no copies."""

import torch
import triton
import triton.language as tl

# solution:
BLOCK = 1024


@triton.jit
def add_kernel(
    x_ptr, y_ptr, out_ptr, numel, size1, size2,
    x_stride0, x_stride1, x_stride2,
    y_stride0, y_stride1, y_stride2,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Program i adds elements i * BLOCK and on, counted in row-major order of the (padded to rank 3) shape."""
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < numel
    column = offsets % size2
    row = offsets // size2 % size1
    plane = offsets // size2 // size1
    x = tl.load(x_ptr + plane * x_stride0 + row * x_stride1 + column * x_stride2, mask=mask)
    y = tl.load(y_ptr + plane * y_stride0 + row * y_stride1 + column * y_stride2, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)
# student:
# @triton.jit
# def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
#     """Adds one tile: BLOCK elements, fewer in the last program."""
#     pid = tl.program_id(0)
#     # TODO: which elements are mine? Build their offsets from pid and tl.arange(0, BLOCK).
#     # TODO: which of them exist? Build a mask.
#     # TODO: load both tiles, add them, store the sum. Give every load and store the mask.
# end


def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return x + y as a new tensor; x and y have the same shape (rank 1 to 3) and dtype, and any strides."""
    # solution:
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    leading = (None,) * (3 - x.dim())
    x, y = x[leading], y[leading]
    grid = (triton.cdiv(out.numel(), BLOCK),)
    add_kernel[grid](x, y, out, out.numel(), x.shape[1], x.shape[2], *x.stride(), *y.stride(), BLOCK=BLOCK)
    return out
    # student:
    # # TODO: allocate the result, choose a grid, launch add_kernel, return the result.
    # raise NotImplementedError("add is not written yet: fill in the TODOs in this file, and delete this line")
    # end
