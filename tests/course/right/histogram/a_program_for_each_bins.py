import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, out, N, bins, s, B: tl.constexpr, T: tl.constexpr):
    """No atomics: a program for so many bins reads all of x, and compares."""
    b = tl.program_id(0) * B + tl.arange(0, B)
    count = tl.zeros((B,), tl.int32)
    for start in range(0, N, T):
        n = start + tl.arange(0, T).to(tl.int64)
        v = tl.load(x + n * s, n < N, -1)
        count += tl.sum((v[None, :] == b[:, None]).to(tl.int32), 1)
    tl.store(out + b, count, b < bins)


def histogram(x, bins):
    out = torch.empty((bins,), dtype=torch.int32, device=x.device)
    kernel[(triton.cdiv(bins, 64),)](x, out, len(x), bins, x.stride(0), 64, 64)
    return out
