# expect: test_contiguous_float32 forbidden-op
"""Only the last step is a kernel; the chain before it is torch, one round trip to memory for each operation."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(y_ptr, residual_ptr, out_ptr, N, stride_rm, stride_rn, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < N
    y = tl.load(y_ptr + row * N + cols, mask=mask)
    residual = tl.load(residual_ptr + row * stride_rm + cols * stride_rn, mask=mask)
    tl.store(out_ptr + row * N + cols, y + residual, mask=mask)


def fused_chain(x, bias, residual):
    M, N = x.shape
    h = x + bias
    y = (0.5 * h * (1 + torch.tanh(0.7978845608 * (h + 0.044715 * h**3)))).contiguous()
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    add_kernel[(M, triton.cdiv(N, 256))](y, residual, out, N, residual.stride(0), residual.stride(1), BLOCK=256)
    return out
