"""One kernel for one cache, launched twice; a head in tiles of 64."""

import torch
import triton
import triton.language as tl


@triton.jit
def put_kernel(cache_ptr, new_ptr, positions_ptr, D, cb, ch, cs, cd, nb, nh, nd, ps, BLOCK: tl.constexpr):
    b = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1).to(tl.int64)
    position = tl.load(positions_ptr + b * ps)
    for start in range(0, D, BLOCK):
        d = start + tl.arange(0, BLOCK).to(tl.int64)
        new = tl.load(new_ptr + b * nb + h * nh + d * nd, mask=d < D)
        tl.store(cache_ptr + b * cb + h * ch + position * cs + d * cd, new, mask=d < D)


def kv_cache_update(k_cache, v_cache, k, v, positions):
    B, H, S, D = k_cache.shape
    for cache, new in ((k_cache, k), (v_cache, v)):
        put_kernel[(B, H)](
            cache, new, positions, D, *cache.stride(), *new.stride(), positions.stride(0), BLOCK=64
        )
    return k_cache, v_cache
