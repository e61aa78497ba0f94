import torch
import triton
import triton.language as tl


@triton.jit
def kernel(cache, new, positions, H, D, cb, ch, cs, cd, BLOCK: tl.constexpr):
    """The new rows are made contiguous first: that is a copy of what may be read, not of the cache."""
    pid = tl.program_id(0)
    b = (pid // H).to(tl.int64)
    h = (pid % H).to(tl.int64)
    at = cache + b * cb + h * ch + tl.load(positions + b) * cs
    for start in range(0, D, BLOCK):
        d = start + tl.arange(0, BLOCK)
        row = tl.load(new + pid.to(tl.int64) * D + d, mask=d < D)
        tl.store(at + d.to(tl.int64) * cd, row, mask=d < D)


def kv_cache_update(k_cache, v_cache, k, v, positions):
    B, H, D = k.shape
    where = positions.contiguous()
    kernel[(B * H,)](k_cache, k.contiguous(), where, H, D, *k_cache.stride(), BLOCK=32)
    kernel[(B * H,)](v_cache, v.contiguous(), where, H, D, *v_cache.stride(), BLOCK=32)
