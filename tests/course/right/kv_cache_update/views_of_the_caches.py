import torch
import triton
import triton.language as tl


@triton.jit
def kernel(c, n, p, H, D, S, cb, ch, cs, cd, nb, nh, nd, ps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    b, h = row // H, row % H
    s = tl.load(p + b * ps)
    tl.device_assert((s >= 0) & (s < S))
    d = tl.arange(0, BLOCK).to(tl.int64)
    x = tl.load(n + b * nb + h * nh + d * nd, mask=d < D, other=0)
    tl.store(c + h * ch + s * cs + d * cd + b * cb, x, mask=d < D)


def kv_cache_update(k_cache, v_cache, k, v, positions):
    B, H, D = k.shape
    for cache, new in ((k_cache, k), (v_cache, v)):
        moved = cache.permute(2, 0, 1, 3)
        s, b, h, d = moved.stride()
        kernel[(B * H,)](moved, new, positions, H, D, cache.size(2), b, h, s, d, *new.stride(), positions.stride(0),
                         BLOCK=triton.next_power_of_2(D))
    return k_cache, v_cache
