import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    offs = tl.program_id(axis=0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    ok = offs < N
    v = tl.load(x_ptr + offs, mask=ok)
    tl.atomic_add(out_ptr + v, tl.full((BLOCK,), 1, tl.int32), mask=ok, sem="relaxed")


def histogram(x: torch.Tensor, bins: int):
    x = x.contiguous()
    result = x.new_zeros(bins)
    grid = lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)
    kernel[grid](x, result, x.numel(), BLOCK=1024)
    return result
