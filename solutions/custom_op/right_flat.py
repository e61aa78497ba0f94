"""One dimension for all: the column is the remainder."""

import torch
import triton
import triton.language as tl
from torch.library import triton_op, wrap_triton


@triton.jit
def forward_kernel(x_ptr, b_ptr, out_ptr, n, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    h = tl.load(x_ptr + i, mask=mask).to(tl.float32) + tl.load(b_ptr + i % N, mask=mask).to(tl.float32)
    tl.store(out_ptr + i, 0.5 * h * (1 + tl.erf(h * 0.7071067811865476)), mask=mask)


@triton.jit
def backward_kernel(dy_ptr, x_ptr, b_ptr, dx_ptr, n, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    h = tl.load(x_ptr + i, mask=mask).to(tl.float32) + tl.load(b_ptr + i % N, mask=mask).to(tl.float32)
    dy = tl.load(dy_ptr + i, mask=mask).to(tl.float32)
    slope = 0.5 * (1 + tl.erf(h * 0.7071067811865476)) + h * 0.3989422804014327 * tl.exp(-0.5 * h * h)
    tl.store(dx_ptr + i, dy * slope, mask=mask)


@triton_op("mylib::bias_gelu", mutates_args={})
def bias_gelu(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    x, bias = x.contiguous(), bias.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    wrap_triton(forward_kernel)[(triton.cdiv(n, 512),)](x, bias, out, n, x.shape[-1], BLOCK=512)
    return out


@triton_op("mylib::bias_gelu_backward", mutates_args={})
def bias_gelu_backward(dy: torch.Tensor, x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    dy, x, bias = dy.contiguous(), x.contiguous(), bias.contiguous()
    dx = torch.empty_like(x)
    n = x.numel()
    wrap_triton(backward_kernel)[(triton.cdiv(n, 512),)](dy, x, bias, dx, n, x.shape[-1], BLOCK=512)
    return dx


def setup_context(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def backward(ctx, dy):
    x, bias = ctx.saved_tensors
    dx = bias_gelu_backward(dy, x, bias)
    return dx, dx.reshape(-1, x.shape[-1]).sum(0)


bias_gelu.register_autograd(backward, setup_context=setup_context)
