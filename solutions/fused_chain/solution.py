"""Bias, tanh-GELU and residual in one pass over memory: each input is read once, the result is written once."""

import torch
import triton
import triton.language as tl

# solution:
BLOCK_M = 4
BLOCK_N = 256


@triton.jit
def gelu(h):
    """0.5 * h * (1 + tanh(u)), written as h * sigmoid(2u): the same function, with nothing to cancel."""
    u = 0.7978845608 * (h + 0.044715 * h * h * h)
    return h * tl.sigmoid(2 * u)


@triton.jit
def fused_chain_kernel(
    x_ptr, bias_ptr, residual_ptr, out_ptr, rows, columns,
    x_stride_m, x_stride_n, bias_stride, residual_stride_m, residual_stride_n, out_stride_m,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """One program computes one tile; the arithmetic is float32 whatever the dtype in memory."""
    # Those that run together walk along the same rows: tiles below one another would be 5 % slower on an H200.
    across = tl.cdiv(columns, BLOCK_N)
    m = (tl.program_id(0) // across).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    n = (tl.program_id(0) % across).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    mask = (m < rows) & (n < columns)
    x = tl.load(x_ptr + m * x_stride_m + n * x_stride_n, mask=mask).to(tl.float32)
    bias = tl.load(bias_ptr + n * bias_stride, mask=n < columns).to(tl.float32)
    residual = tl.load(residual_ptr + m * residual_stride_m + n * residual_stride_n, mask=mask).to(tl.float32)
    tl.store(out_ptr + m * out_stride_m + n, gelu(x + bias) + residual, mask=mask)
# student:
# @triton.jit
# def fused_chain_kernel(x_ptr, bias_ptr, residual_ptr, out_ptr, M, N, BLOCK: tl.constexpr):
#     """Computes one tile of the result: each input is read once, the result is written once."""
#     # TODO: which tile is mine? Rows from one program id, columns from another, for example.
#     # TODO: load x, bias and residual, with their strides (pass them as arguments) and a mask; go to float32.
#     # TODO: compute the whole chain; tl.sigmoid or tl.exp will help you write tanh.
#     # TODO: store the tile.
# end


def fused_chain(x: torch.Tensor, bias: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
    """Return gelu(x + bias) + residual as a new tensor; x and residual are [M, N], bias is [N], strides are any."""
    # solution:
    rows, columns = x.shape
    out = torch.empty((rows, columns), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(rows, BLOCK_M) * triton.cdiv(columns, BLOCK_N),)
    fused_chain_kernel[grid](
        x, bias, residual, out, rows, columns,
        *x.stride(), bias.stride(0), *residual.stride(), out.stride(0),
        BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N,
    )  # fmt: skip
    return out
    # student:
    # # TODO: allocate the result and nothing else, launch the kernel once, return the result.
    # raise NotImplementedError("fused_chain is not written yet: fill in the TODOs in this file, and delete this line")
    # end
