"""A tile of rows and columns for each program; the gradient of bias in a second kernel's column sums."""

import torch
import triton
import triton.language as tl
from torch.library import triton_op, wrap_triton


@triton.jit
def cdf(h):
    return 0.5 * (1.0 + tl.erf(h * 0.7071067811865476))


@triton.jit
def pdf(h):
    return 0.3989422804014327 * tl.exp(-0.5 * h * h)


@triton.jit
def forward_kernel(x_ptr, b_ptr, y_ptr, M, N, sxm, sxn, sb, BM: tl.constexpr, BN: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    mask = (m[:, None] < M) & (n[None, :] < N)
    x = tl.load(x_ptr + m[:, None].to(tl.int64) * sxm + n[None, :] * sxn, mask=mask).to(tl.float32)
    b = tl.load(b_ptr + n * sb, mask=n < N).to(tl.float32)
    h = x + b[None, :]
    y = h * cdf(h)
    tl.store(y_ptr + m[:, None].to(tl.int64) * N + n[None, :], y, mask=mask)


@triton.jit
def backward_kernel(g_ptr, x_ptr, b_ptr, dx_ptr, M, N, sgm, sgn, sxm, sxn, sb, BM: tl.constexpr, BN: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    mask = (m[:, None] < M) & (n[None, :] < N)
    g = tl.load(g_ptr + m[:, None].to(tl.int64) * sgm + n[None, :] * sgn, mask=mask).to(tl.float32)
    x = tl.load(x_ptr + m[:, None].to(tl.int64) * sxm + n[None, :] * sxn, mask=mask).to(tl.float32)
    b = tl.load(b_ptr + n * sb, mask=n < N).to(tl.float32)
    h = x + b[None, :]
    slope = cdf(h) + h * pdf(h)
    tl.store(dx_ptr + m[:, None].to(tl.int64) * N + n[None, :], g * slope, mask=mask)


@triton.jit
def column_sums_kernel(d_ptr, s_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BN,), tl.float32)
    for start in range(0, M, BM):
        m = start + tl.arange(0, BM)
        mask = (m[:, None] < M) & (n[None, :] < N)
        d = tl.load(d_ptr + m[:, None].to(tl.int64) * N + n[None, :], mask=mask, other=0.0)
        acc += tl.sum(d, axis=0)
    tl.store(s_ptr + n, acc, mask=n < N)


def tiles(M, N):
    return (triton.cdiv(M, 16), triton.cdiv(N, 64))


@triton_op("pupil::bias_gelu", mutates_args=())
def bias_gelu(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    N = x.shape[-1]
    x2 = x.reshape(-1, N)
    M = x2.shape[0]
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    wrap_triton(forward_kernel)[tiles(M, N)](
        x2, bias, y, M, N, x2.stride(0), x2.stride(1), bias.stride(0), BM=16, BN=64
    )
    return y


@triton_op("pupil::bias_gelu_grads", mutates_args=())
def bias_gelu_grads(grad: torch.Tensor, x: torch.Tensor, bias: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    N = x.shape[-1]
    x2 = x.reshape(-1, N)
    g2 = grad.reshape(-1, N)
    M = x2.shape[0]
    dx = torch.empty((M, N), dtype=torch.float32, device=x.device)
    db = torch.empty((N,), dtype=torch.float32, device=x.device)
    wrap_triton(backward_kernel)[tiles(M, N)](
        g2, x2, bias, dx, M, N, g2.stride(0), g2.stride(1), x2.stride(0), x2.stride(1), bias.stride(0), BM=16, BN=64
    )
    wrap_triton(column_sums_kernel)[(triton.cdiv(N, 64),)](dx, db, M, N, BM=16, BN=64)
    return dx.reshape(x.shape).to(x.dtype), db.to(bias.dtype)


def keep(ctx, inputs, output):
    x, bias = inputs
    ctx.save_for_backward(x, bias)


def differentiate(ctx, grad):
    x, bias = ctx.saved_tensors
    return bias_gelu_grads(grad, x, bias)


bias_gelu.register_autograd(differentiate, setup_context=keep)
