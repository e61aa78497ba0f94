"""The plain way: one program for each query, no tensor cores, a running maximum."""

import torch
import triton
import triton.language as tl


@triton.jit
def decode_kernel(
    q_ptr, k_ptr, v_ptr, lengths_ptr, out_ptr,
    sqb, sqh, sqd, skb, skh, sks, skd, svb, svh, svs, svd, sl,
    q_heads, group, sm_scale,
    D: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_D: tl.constexpr,
):
    skb, svb = tl.cast(skb, tl.int64), tl.cast(svb, tl.int64)
    b = tl.program_id(0) // q_heads
    h = tl.program_id(0) % q_heads
    kv_h = h // group
    length = tl.load(lengths_ptr + b * sl)
    d = tl.arange(0, BLOCK_D)
    q = tl.load(q_ptr + b * sqb + h * sqh + d * sqd, mask=d < D, other=0.0).to(tl.float32) * sm_scale
    top = -float("inf")
    total = 0.0
    acc = tl.zeros((BLOCK_D,), dtype=tl.float32)
    for start in range(0, length, BLOCK_S):
        s = start + tl.arange(0, BLOCK_S)
        mask = (s[:, None] < length) & (d[None, :] < D)
        k = tl.load(k_ptr + b * skb + kv_h * skh + s[:, None] * sks + d[None, :] * skd, mask=mask, other=0.0)
        scores = tl.sum(q[None, :] * k.to(tl.float32), axis=1)
        scores = tl.where(s < length, scores, -float("inf"))
        new_top = tl.maximum(top, tl.max(scores, axis=0))
        p = tl.exp(scores - new_top)
        alpha = tl.exp(top - new_top)
        v = tl.load(v_ptr + b * svb + kv_h * svh + s[:, None] * svs + d[None, :] * svd, mask=mask, other=0.0)
        total = total * alpha + tl.sum(p, axis=0)
        acc = acc * alpha + tl.sum(p[:, None] * v.to(tl.float32), axis=0)
        top = new_top
    tl.store(out_ptr + (b * q_heads + h) * D + d, acc / total, mask=d < D)


def decode_attention(q, k_cache, v_cache, lengths, sm_scale):
    B, Hq, D = q.shape
    Hkv, S = k_cache.shape[1], k_cache.shape[2]
    out = torch.empty((B, Hq, D), dtype=q.dtype, device=q.device)
    decode_kernel[(B * Hq,)](
        q, k_cache, v_cache, lengths, out,
        *q.stride(), *k_cache.stride(), *v_cache.stride(), lengths.stride(0),
        Hq, Hq // Hkv, sm_scale, D=D, BLOCK_S=32, BLOCK_D=triton.next_power_of_2(D),
    )
    return out
