"""gelu(x + bias) as an operator of torch: autograd differentiates it, and torch.compile looks into it."""

import torch
import triton
import triton.language as tl
from torch.library import triton_op, wrap_triton

# solution:
HALF_ROOT = tl.constexpr(0.7071067811865476)  # 1 / sqrt(2)
DENSITY = tl.constexpr(0.3989422804014327)  # 1 / sqrt(2 * pi): the height of the bell curve
BLOCK_M, BLOCK_N = 4, 512


@triton.jit
def tile_of(rows, columns, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """This program's offsets into a contiguous matrix, its columns, and which of these exist."""
    tiles = tl.cdiv(columns, BLOCK_N)
    m = (tl.program_id(0) // tiles).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    n = (tl.program_id(0) % tiles) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    return m * columns + n, n, (m < rows) & (n < columns)


@triton.jit
def forward_kernel(x_ptr, bias_ptr, out_ptr, rows, columns, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Writes gelu(x + bias) for one tile."""
    offsets, n, mask = tile_of(rows, columns, BLOCK_M, BLOCK_N)
    bias = tl.load(bias_ptr + n, mask=n < columns, other=0.0).to(tl.float32)
    h = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32) + bias
    out = 0.5 * h * (1 + tl.erf(h * HALF_ROOT))
    tl.store(out_ptr + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def backward_kernel(dout_ptr, x_ptr, bias_ptr, dx_ptr, rows, columns, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Writes the gradient of x for one tile: dout times the derivative of gelu, computed anew from x and bias."""
    offsets, n, mask = tile_of(rows, columns, BLOCK_M, BLOCK_N)
    bias = tl.load(bias_ptr + n, mask=n < columns, other=0.0).to(tl.float32)
    h = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32) + bias
    dout = tl.load(dout_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    slope = 0.5 * (1 + tl.erf(h * HALF_ROOT)) + h * DENSITY * tl.exp(-0.5 * h * h)
    tl.store(dx_ptr + offsets, (dout * slope).to(dx_ptr.dtype.element_ty), mask=mask)


def shape_and_grid(x):
    """How many rows and columns the contiguous x has as a matrix, and how many programs that takes."""
    columns = x.shape[-1]
    rows = x.numel() // columns
    return rows, columns, (triton.cdiv(rows, BLOCK_M) * triton.cdiv(columns, BLOCK_N),)


# student:
# @triton.jit
# def forward_kernel(x_ptr, bias_ptr, out_ptr, n, N, BLOCK: tl.constexpr):
#     """Writes gelu(x + bias) for BLOCK elements of a contiguous x whose last dimension is N."""
#     # TODO: which elements are mine, and which of bias goes with each? Go to float32; tl.erf is there.
# end


# solution:
@triton_op("course::bias_gelu", mutates_args={})
def bias_gelu(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Return gelu(x + bias), the exact one, as a new tensor; x is [..., N], bias [N], strides are any."""
    x, bias = x.contiguous(), bias.contiguous()
    out = torch.empty_like(x)
    rows, columns, grid = shape_and_grid(x)
    # wrap_triton: so torch.compile sees a kernel that it knows, and not a call into the unknown.
    wrap_triton(forward_kernel)[grid](x, bias, out, rows, columns, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N)
    return out


@triton_op("course::bias_gelu_backward", mutates_args={})
def bias_gelu_backward(dout: torch.Tensor, x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Return the gradient of x."""
    dout, x, bias = dout.contiguous(), x.contiguous(), bias.contiguous()
    dx = torch.empty_like(x)
    rows, columns, grid = shape_and_grid(x)
    wrap_triton(backward_kernel)[grid](dout, x, bias, dx, rows, columns, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N)
    return dx


def setup_context(ctx, inputs, output):
    """Keep the inputs: what is computed anew need not be stored."""
    ctx.save_for_backward(*inputs)


def backward(ctx, dout):
    """Return the gradients of x and of bias, which is that of x, added up over all rows."""
    x, bias = ctx.saved_tensors
    dx = bias_gelu_backward(dout, x, bias)
    return dx, dx.reshape(-1, x.shape[-1]).sum(0)


bias_gelu.register_autograd(backward, setup_context=setup_context)
# student:
# # TODO: make this an operator of torch, with triton_op("course::bias_gelu", mutates_args={}).
# def bias_gelu(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
#     """Return gelu(x + bias), the exact one, as a new tensor; x is [..., N], bias [N], strides are any."""
#     # TODO: allocate the result, launch with wrap_triton(kernel)[grid](...), return the result.
#     raise NotImplementedError("bias_gelu is not written yet: fill in the TODOs in this file, and delete this line")
#
#
# # TODO: bias_gelu.register_autograd(backward, setup_context=...): see README.md.
# end
