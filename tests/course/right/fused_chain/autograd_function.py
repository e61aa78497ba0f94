"""A torch.autograd.Function whose forward is one launch, with strides as compile-time constants."""

import torch
import triton
import triton.language as tl


@triton.jit
def tanh(v):
    e = tl.exp(-2 * tl.abs(v))
    return tl.where(v >= 0, 1.0, -1.0) * (1 - e) / (1 + e)


@triton.jit
def forward_kernel(
    X, B, R, Y, N: tl.constexpr, X0: tl.constexpr, X1: tl.constexpr, B0: tl.constexpr, R0: tl.constexpr,
    R1: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    tl.device_assert(i >= 0)
    h = (tl.load(X + i * X0 + j * X1, j < N, 0) + tl.load(B + j * B0, j < N, 0).to(tl.float32)).to(tl.float32)
    y = 0.5 * h * (1 + tanh(0.7978845608 * (h + 0.044715 * (h * h * h)))) + tl.load(R + i * R0 + j * R1, j < N, 0)
    tl.store(Y + i * N + j, y, j < N)


class FusedChain(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bias, residual):
        ctx.save_for_backward(x, bias)
        y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        n = x.shape[1]
        block = triton.next_power_of_2(n)
        forward_kernel[(x.shape[0],)](
            x, bias, residual, y, n, x.stride(0), x.stride(1), bias.stride(0), *residual.stride(), BLOCK=block
        )
        return y

    @staticmethod
    def backward(ctx, grad):
        raise NotImplementedError("forward only, so far")


fused_chain = FusedChain.apply
