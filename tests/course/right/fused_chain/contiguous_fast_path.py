"""One long vector where all tensors lie row by row, whose rows need not begin anew; else tiles of any strides."""

import torch
import triton
import triton.language as tl


@triton.jit
def gelu(h):
    return h * tl.sigmoid(1.5957691216 * (h + 0.044715 * h * h * h))


@triton.jit
def vector_kernel(x_ptr, bias_ptr, residual_ptr, out_ptr, total, columns, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    exists = at < total
    h = tl.load(x_ptr + at, exists, 0.0).to(tl.float32) + tl.load(bias_ptr + at % columns, exists, 0.0).to(tl.float32)
    tl.store(out_ptr + at, gelu(h) + tl.load(residual_ptr + at, exists, 0.0).to(tl.float32), exists)


@triton.jit
def row_kernel(x_ptr, bias_ptr, residual_ptr, out_ptr, columns, sxm, sxn, sb, srm, srn, BLOCK: tl.constexpr):
    row, n = tl.program_id(0).to(tl.int64), (tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    exists = n < columns
    h = tl.load(x_ptr + row * sxm + n * sxn, exists, 0.0).to(tl.float32)
    h += tl.load(bias_ptr + n * sb, exists, 0.0).to(tl.float32)
    y = gelu(h) + tl.load(residual_ptr + row * srm + n * srn, exists, 0.0).to(tl.float32)
    tl.store(out_ptr + row * columns + n, y, exists)


def fused_chain(x, bias, residual):
    rows, columns = x.shape
    out = torch.empty((rows, columns), dtype=x.dtype, device=x.device)
    dense = x.is_contiguous() and bias.stride(0) == 1 and residual.stride() == (columns, 1)
    if dense and columns % 16 == 0:
        vector_kernel[(triton.cdiv(rows * columns, 512),)](x, bias, residual, out, rows * columns, columns, BLOCK=512)
    else:
        row_kernel[(rows, triton.cdiv(columns, 256))](
            x, bias, residual, out, columns, *x.stride(), bias.stride(0), *residual.stride(), BLOCK=256
        )
    return out
