import torch
import triton
import triton.language as tl


@triton.jit
def kernel(c, n, p, H, D, cb, ch, cs, cd, nb, nh, nd, ps, HEADS: tl.constexpr, BLOCK: tl.constexpr):
    b = tl.program_id(0).to(tl.int64)
    h = (tl.program_id(1) * HEADS + tl.arange(0, HEADS)).to(tl.int64)[:, None]
    d = tl.arange(0, BLOCK).to(tl.int64)[None, :]
    ok = (h < H) & (d < D)
    s = tl.load(p + b * ps)
    tl.store(c + b * cb + h * ch + s * cs + d * cd, tl.load(n + b * nb + h * nh + d * nd, mask=ok, other=0.0), mask=ok)


def kv_cache_update(k_cache, v_cache, k, v, positions):
    B, H, D = k.shape
    for cache, new in zip((k_cache, v_cache), (k, v)):
        kernel[(B, triton.cdiv(H, 2))](cache, new, positions, H, D, *cache.stride(), *new.stride(), positions.stride(0),
                                       HEADS=2, BLOCK=triton.next_power_of_2(D))
