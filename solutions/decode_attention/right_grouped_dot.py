"""A group of queries is a tile of 16 rows: tl.dot in its default precision, and the scale is in q from the start."""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    Q, K, V, L, O, sqb, sqh, sqd, skb, skh, sks, skd, svb, svh, svs, svd, sl, scale,
    H: tl.constexpr, G: tl.constexpr, D: tl.constexpr, BG: tl.constexpr, BS: tl.constexpr, BD: tl.constexpr,
):
    skb, svb = tl.cast(skb, tl.int64), tl.cast(svb, tl.int64)
    h = tl.program_id(0)
    b = tl.program_id(1)
    n = tl.load(L + b * sl)
    g = tl.arange(0, BG)
    d = tl.arange(0, BD)
    s = tl.arange(0, BS)
    q_mask = (g[:, None] < G) & (d[None, :] < D)
    q = tl.load(Q + b * sqb + (h * G + g)[:, None] * sqh + d[None, :] * sqd, mask=q_mask, other=0.0)
    q = (q * (scale * 1.44269504)).to(q.dtype)
    m = tl.full([BG], float("-inf"), tl.float32)
    l = tl.zeros([BG], tl.float32)
    acc = tl.zeros([BG, BD], tl.float32)
    k_ptrs = K + b * skb + h * skh + d[:, None] * skd + s[None, :] * sks
    v_ptrs = V + b * svb + h * svh + s[:, None] * svs + d[None, :] * svd
    for start in range(0, tl.cdiv(n, BS) * BS, BS):
        k = tl.load(k_ptrs, mask=(d[:, None] < D) & (start + s[None, :] < n), other=0.0)
        v = tl.load(v_ptrs, mask=(d[None, :] < D) & (start + s[:, None] < n), other=0.0)
        qk = tl.dot(q, k)
        qk += tl.where(start + s[None, :] < n, 0, float("-inf"))
        m_new = tl.maximum(m, tl.max(qk, 1))
        p = tl.math.exp2(qk - m_new[:, None])
        alpha = tl.math.exp2(m - m_new)
        l = l * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        acc += tl.dot(p.to(v.dtype), v)
        m = m_new
        k_ptrs += BS * sks
        v_ptrs += BS * svs
    o_ptrs = O + (b * H * G + h * G + g[:, None]) * D + d[None, :]
    tl.store(o_ptrs, (acc / l[:, None]).to(O.dtype.element_ty), mask=q_mask)


def decode_attention(q, k_cache, v_cache, lengths, sm_scale):
    B, Hq, D = q.shape
    H = k_cache.shape[1]
    o = torch.empty(B, Hq, D, device=q.device, dtype=q.dtype)
    kernel[(H, B)](
        q, k_cache, v_cache, lengths, o, *q.stride(), *k_cache.stride(), *v_cache.stride(), lengths.stride(0), sm_scale,
        H=H, G=Hq // H, D=D,
        BG=max(16, triton.next_power_of_2(Hq // H)), BS=64, BD=max(16, triton.next_power_of_2(D)), num_stages=2,
    )
    return o
