"""The staff's clamp: one program for each tile of 128 elements."""

import torch
import triton
import triton.language as tl


@triton.jit
def clamp_kernel(x_ptr, out_ptr, n, stride, low, high, BLOCK: tl.constexpr):
    # solution:
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i * stride, mask=i < n)
    tl.store(out_ptr + i, tl.minimum(tl.maximum(x, low), high), mask=i < n)
    # student:
    # # TODO: which elements are this program's? Load them, clamp them, store them.
    # pass
    # end


def clamp(x, low, high):
    # solution:
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    clamp_kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), x.stride(0), low, high, BLOCK=128)
    return out
    # student:
    # # TODO: allocate the result, launch the kernel, return the result.
    # raise NotImplementedError
    # end
