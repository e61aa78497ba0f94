"""Scores, softmax and weighted sum, each in a kernel of its own, with the scores in memory between them."""

import torch
import triton
import triton.language as tl


@triton.jit
def scores_kernel(q, k, lengths, scores, group, S, sq0, sq1, sq2, sk0, sk1, sk2, sk3, sl, scale,
                  D: tl.constexpr, BS: tl.constexpr, BD: tl.constexpr):
    sk0 = tl.cast(sk0, tl.int64)
    tile, h, b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    length = tl.load(lengths + b * sl)
    s = tile * BS + tl.arange(0, BS)
    d = tl.arange(0, BD)
    query = tl.load(q + b * sq0 + h * sq1 + d * sq2, mask=d < D, other=0).to(tl.float32)
    where = k + b * sk0 + h // group * sk1 + s[:, None] * sk2 + d[None, :] * sk3
    keys = tl.load(where, mask=(s[:, None] < length) & (d[None, :] < D), other=0).to(tl.float32)
    value = tl.where(s < length, tl.sum(keys * query[None, :], 1) * scale, float("-inf"))
    row = b * tl.num_programs(1) + h
    tl.store(scores + row * S + s, value, mask=s < S)


@triton.jit
def softmax_kernel(scores, S, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    s = tl.arange(0, BLOCK)
    x = tl.load(scores + row * S + s, mask=s < S, other=float("-inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(scores + row * S + s, e / tl.sum(e, 0), mask=s < S)


@triton.jit
def values_kernel(scores, v, lengths, out, group, S, sv0, sv1, sv2, sv3, sl,
                  D: tl.constexpr, BS: tl.constexpr, BD: tl.constexpr):
    sv0 = tl.cast(sv0, tl.int64)
    h, b = tl.program_id(0), tl.program_id(1)
    length = tl.load(lengths + b * sl)
    d = tl.arange(0, BD)
    row = b * tl.num_programs(0) + h
    acc = tl.zeros([BS, BD], dtype=tl.float32)
    for start in range(0, length, BS):
        s = start + tl.arange(0, BS)
        p = tl.load(scores + row * S + s, mask=s < length, other=0)
        where = v + b * sv0 + h // group * sv1 + s[:, None] * sv2 + d[None, :] * sv3
        acc += p[:, None] * tl.load(where, mask=(s[:, None] < length) & (d[None, :] < D), other=0)
    tl.store(out + row * D + d, tl.sum(acc, 0), mask=d < D)


def decode_attention(q, k_cache, v_cache, lengths, sm_scale):
    B, H, D = q.shape
    S = k_cache.shape[2]
    group = H // k_cache.shape[1]
    BD = triton.next_power_of_2(D)
    scores = torch.empty((B, H, S), dtype=torch.float32, device=q.device)
    out = torch.empty((B, H, D), dtype=q.dtype, device=q.device)
    scores_kernel[(triton.cdiv(S, 64), H, B)](
        q, k_cache, lengths, scores, group, S, *q.stride(), *k_cache.stride(), lengths.stride(0), sm_scale,
        D=D, BS=64, BD=BD,
    )
    softmax_kernel[(B * H,)](scores, S, BLOCK=triton.next_power_of_2(S))
    values_kernel[(H, B)](scores, v_cache, lengths, out, group, S, *v_cache.stride(), lengths.stride(0), D=D, BS=64, BD=BD)
    return out
