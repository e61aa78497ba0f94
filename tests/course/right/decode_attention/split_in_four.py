"""Four parts of the positions for each query; the second kernel is written as a chain of four."""

import torch
import triton
import triton.language as tl


@triton.jit
def decode_kernel(
    q_ptr, k_ptr, v_ptr, lengths_ptr, sums_ptr, tops_ptr, totals_ptr,
    sqb, sqh, sqd, skb, skh, sks, skd, svb, svh, svs, svd, sl,
    q_heads, group, sm_scale,
    D: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_D: tl.constexpr,
):
    part = tl.program_id(1)
    b = tl.program_id(0) // q_heads
    h = tl.program_id(0) % q_heads
    kv_h = h // group
    length = tl.load(lengths_ptr + b * sl)
    d = tl.arange(0, BLOCK_D)
    q = tl.load(q_ptr + b * sqb + h * sqh + d * sqd, mask=d < D, other=0.0).to(tl.float32) * sm_scale
    quarter = (length + 3) // 4
    first = part * quarter
    length = min(first + quarter, length)
    top = -1e30
    total = 0.0
    acc = tl.zeros((BLOCK_D,), dtype=tl.float32)
    for start in range(first, length, BLOCK_S):
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
    row = (b * q_heads + h) * 4 + part
    tl.store(sums_ptr + row * D + d, acc, mask=d < D)
    tl.store(tops_ptr + row, top)
    tl.store(totals_ptr + row, total)


@triton.jit
def join_kernel(sums_ptr, tops_ptr, totals_ptr, out_ptr, D: tl.constexpr, BLOCK_D: tl.constexpr):
    row = tl.program_id(0)
    d = tl.arange(0, BLOCK_D)
    top = -1e30
    for part in tl.static_range(4):
        top = tl.maximum(top, tl.load(tops_ptr + row * 4 + part))
    total = 0.0
    acc = tl.zeros((BLOCK_D,), dtype=tl.float32)
    for part in tl.static_range(4):
        weight = tl.exp(tl.load(tops_ptr + row * 4 + part) - top)
        total += weight * tl.load(totals_ptr + row * 4 + part)
        acc += weight * tl.load(sums_ptr + (row * 4 + part) * D + d, mask=d < D, other=0.0)
    tl.store(out_ptr + row * D + d, acc / total, mask=d < D)


def decode_attention(q, k_cache, v_cache, lengths, sm_scale):
    B, Hq, D = q.shape
    Hkv, S = k_cache.shape[1], k_cache.shape[2]
    out = torch.empty((B, Hq, D), dtype=q.dtype, device=q.device)
    sums = torch.empty((B * Hq * 4, D), dtype=torch.float32, device=q.device)
    tops, totals = torch.empty((2, B * Hq * 4), dtype=torch.float32, device=q.device)
    BLOCK_D = triton.next_power_of_2(D)
    decode_kernel[(B * Hq, 4)](
        q, k_cache, v_cache, lengths, sums, tops, totals,
        *q.stride(), *k_cache.stride(), *v_cache.stride(), lengths.stride(0),
        Hq, Hq // Hkv, sm_scale, D=D, BLOCK_S=32, BLOCK_D=BLOCK_D,
    )
    join_kernel[(B * Hq,)](sums, tops, totals, out, D=D, BLOCK_D=BLOCK_D)
    return out
