# expect: test_one_launch_one_allocation too-many-launches
"""One kernel for the bias, one for the rest, and a tensor between them: not fused."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_bias_kernel(x_ptr, bias_ptr, h_ptr, N, stride_xm, stride_xn, stride_b, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=mask).to(tl.float32)
    bias = tl.load(bias_ptr + cols * stride_b, mask=mask).to(tl.float32)
    tl.store(h_ptr + row * N + cols, x + bias, mask=mask)


@triton.jit
def gelu_kernel(h_ptr, residual_ptr, out_ptr, N, stride_rm, stride_rn, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < N
    h = tl.load(h_ptr + row * N + cols, mask=mask)
    residual = tl.load(residual_ptr + row * stride_rm + cols * stride_rn, mask=mask).to(tl.float32)
    u = 0.7978845608 * (h + 0.044715 * h * h * h)
    tl.store(out_ptr + row * N + cols, h * tl.sigmoid(2 * u) + residual, mask=mask)


def fused_chain(x, bias, residual):
    M, N = x.shape
    h = torch.empty((M, N), dtype=torch.float32, device=x.device)
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    grid = (M, triton.cdiv(N, 256))
    add_bias_kernel[grid](x, bias, h, N, x.stride(0), x.stride(1), bias.stride(0), BLOCK=256)
    gelu_kernel[grid](h, residual, out, N, residual.stride(0), residual.stride(1), BLOCK=256)
    return out
