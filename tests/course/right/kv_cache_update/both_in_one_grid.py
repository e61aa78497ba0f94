import torch
import triton
import triton.language as tl


@triton.jit
def copy(cache, new, s, b, h, d, D, cb, ch, cs, cd, nb, nh, nd):
    tl.store(cache + b * cb + h * ch + s * cs + d * cd, tl.load(new + b * nb + h * nh + d * nd, mask=d < D), mask=d < D)


@triton.jit
def kernel(kc, vc, k, v, p, D, kcb, kch, kcs, kcd, vcb, vch, vcs, vcd, kb, kh, kd, vb, vh, vd, ps, BLOCK: tl.constexpr):
    b, h = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
    d = tl.arange(0, BLOCK).to(tl.int64)
    s = tl.load(p + b * ps)
    if tl.program_id(2) == 0:
        copy(kc, k, s, b, h, d, D, kcb, kch, kcs, kcd, kb, kh, kd)
    else:
        copy(vc, v, s, b, h, d, D, vcb, vch, vcs, vcd, vb, vh, vd)


def kv_cache_update(k_cache, v_cache, k, v, positions):
    B, H, D = k.shape
    kernel[(B, H, 2)](k_cache, v_cache, k, v, positions, D, *k_cache.stride(), *v_cache.stride(), *k.stride(), *v.stride(),
                      positions.stride(0), BLOCK=triton.next_power_of_2(D))
    return None
