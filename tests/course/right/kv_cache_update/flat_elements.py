import torch
import triton
import triton.language as tl


@triton.jit
def kernel(kc, vc, k, v, p, H, D, total, kcb, kch, kcs, kcd, vcb, vch, vcs, vcd, kb, kh, kd, vb, vh, vd, ps, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    ok = i < total
    d, h, b = i % D, i // D % H, i // D // H
    s = tl.load(p + b * ps, mask=ok, other=0)
    tl.store(kc + b * kcb + h * kch + s * kcs + d * kcd, tl.load(k + b * kb + h * kh + d * kd, mask=ok), mask=ok)
    tl.store(vc + b * vcb + h * vch + s * vcs + d * vcd, tl.load(v + b * vb + h * vh + d * vd, mask=ok), mask=ok)


def kv_cache_update(k_cache, v_cache, k, v, positions):
    B, H, D = k.shape
    total = B * H * D
    kernel[(triton.cdiv(total, 256),)](
        k_cache, v_cache, k, v, positions, H, D, total, *k_cache.stride(), *v_cache.stride(), *k.stride(), *v.stride(),
        positions.stride(0), BLOCK=256,
    )
