"""One query against a long cache: each program takes a part of the positions, a second kernel puts the parts together."""

import torch
import triton
import triton.language as tl

# solution:
LOG2E = 1.4426950408889634
PROGRAMS = 1024  # enough to fill the card several times over, for rows of unequal lengths finish at unequal times
BLOCK_S = 64


@triton.jit
def my_part(length, part, parts, BLOCK_S: tl.constexpr):
    """The positions from begin to end that are part `part` of `length`: whole tiles, and maybe none at all."""
    size = tl.cdiv(tl.cdiv(length, parts), BLOCK_S) * BLOCK_S
    begin = part * size
    return begin, min(begin + size, length)


@triton.jit
def attend_kernel(
    q_ptr, k_ptr, v_ptr, lengths_ptr, result_ptr, log_sum_ptr,
    q_stride_b, q_stride_h, q_stride_d,
    k_stride_b, k_stride_h, k_stride_s, k_stride_d,
    v_stride_b, v_stride_h, v_stride_s, v_stride_d,
    lengths_stride, kv_heads, scale,
    D: tl.constexpr, GROUP: tl.constexpr,
    BLOCK_G: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """One program: the GROUP queries that share a head of the cache, over one part of its positions.

    All in powers of two: exp(x) is exp2(x * log2(e)), and `scale` has the factor in it.
    """
    b = (tl.program_id(0) // kv_heads).to(tl.int64)
    head = tl.program_id(0) % kv_heads
    part, parts = tl.program_id(1), tl.num_programs(1)
    begin, end = my_part(tl.load(lengths_ptr + b * lengths_stride), part, parts, BLOCK_S)

    g, d = tl.arange(0, BLOCK_G)[:, None], tl.arange(0, BLOCK_D)[None, :]
    mine = (g < GROUP) & (d < D)
    query_head = head * GROUP + g
    q = tl.load(q_ptr + b * q_stride_b + query_head * q_stride_h + d * q_stride_d, mask=mine, other=0.0)
    k_ptr += b * k_stride_b + head.to(tl.int64) * k_stride_h + d * k_stride_d
    v_ptr += b * v_stride_b + head.to(tl.int64) * v_stride_h + d * v_stride_d

    peak = tl.full((BLOCK_G,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_G,), dtype=tl.float32)
    result = tl.zeros((BLOCK_G, BLOCK_D), dtype=tl.float32)
    for start in range(begin, end, BLOCK_S):
        s = start + tl.arange(0, BLOCK_S).to(tl.int64)[:, None]
        there = (s < end) & (d < D)
        k = tl.load(k_ptr + s * k_stride_s, mask=there, other=0.0)
        # Three products of tf32 parts make up for what one would lose of a float32.
        scores = tl.dot(q, k.T, input_precision="tf32x3") * scale
        scores = tl.where(start + tl.arange(0, BLOCK_S)[None, :] < end, scores, -float("inf"))
        higher = tl.maximum(peak, tl.max(scores, axis=1))
        weights = tl.exp2(scores - higher[:, None])
        shrink = tl.exp2(peak - higher)
        v = tl.load(v_ptr + s * v_stride_s, mask=there, other=0.0)
        total = total * shrink + tl.sum(weights, axis=1)
        result = tl.dot(weights.to(v.dtype), v, result * shrink[:, None], input_precision="tf32x3")
        peak = higher

    total = tl.where(begin < end, total, 1.0)  # an empty part says nothing, and nobody will ask it
    place = (b * kv_heads * GROUP + query_head).to(tl.int64) * parts + part
    tl.store(result_ptr + place * D + d, result / total[:, None], mask=mine)
    tl.store(log_sum_ptr + place, (peak + tl.log2(total))[:, None], mask=g < GROUP)


@triton.jit
def combine_kernel(
    parts_ptr, log_sum_ptr, lengths_ptr, out_ptr, lengths_stride, query_heads, parts,
    D: tl.constexpr, PARTS: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """One program: the parts of one query, each weighted by the sum that it divided by."""
    row = tl.program_id(0).to(tl.int64)
    length = tl.load(lengths_ptr + row // query_heads * lengths_stride)
    part, d = tl.arange(0, PARTS), tl.arange(0, BLOCK_D)
    begin, _ = my_part(length, part, parts, BLOCK_S)
    used = (part < parts) & (begin < length)
    log_sum = tl.load(log_sum_ptr + row * parts + part, mask=used, other=-float("inf"))
    weight = tl.exp2(log_sum - tl.max(log_sum, axis=0))
    place = (row * parts + part[:, None]) * D + d[None, :]
    result = tl.load(parts_ptr + place, mask=used[:, None] & (d < D)[None, :], other=0.0)
    result = tl.sum(result * weight[:, None], axis=0) / tl.sum(weight, axis=0)
    tl.store(out_ptr + row * D + d, result, mask=d < D)


# student:
# @triton.jit
# def decode_kernel(
#     q_ptr, k_ptr, v_ptr, lengths_ptr, out_ptr,
#     q_stride_b, q_stride_h, q_stride_d,
#     k_stride_b, k_stride_h, k_stride_s, k_stride_d,
#     v_stride_b, v_stride_h, v_stride_s, v_stride_d,
#     lengths_stride, q_heads, kv_heads, sm_scale,
#     D: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_D: tl.constexpr,
# ):
#     """Computes one row of D results: for one query head of one sequence."""
#     # TODO: which sequence b and which query head are mine, and which head of the cache belongs to it?
#     # TODO: load the query and the length.
#     # TODO: walk along the cache up to the length, in tiles of BLOCK_S positions: scores, the highest of all so far,
#     #       the sum of the weights so far, the weighted sum of the values so far. Compute in float32.
#     # TODO: divide, and store the row.
# end


def decode_attention(
    q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, lengths: torch.Tensor, sm_scale: float
) -> torch.Tensor:
    """Return softmax(sm_scale * q K^T) V as a new [B, Hq, D] tensor; of sequence b, `lengths[b]` positions count.

    q is [B, Hq, D], the caches are [B, Hkv, S, D] of q's dtype, lengths is int32 [B]; strides are any.
    """
    # solution:
    (B, Hq, D), (Hkv, S) = q.shape, k_cache.shape[1:3]
    out = torch.empty((B, Hq, D), dtype=q.dtype, device=q.device)
    parts = max(1, min(PROGRAMS // (B * Hkv), triton.cdiv(S, 4 * BLOCK_S), 128))
    results = out if parts == 1 else torch.empty((B, Hq, parts, D), dtype=torch.float32, device=q.device)
    log_sums = torch.empty((B, Hq, parts), dtype=torch.float32, device=q.device)
    block_g, block_d = (max(16, triton.next_power_of_2(n)) for n in (Hq // Hkv, D))
    attend_kernel[(B * Hkv, parts)](
        q, k_cache, v_cache, lengths, results, log_sums,
        *q.stride(), *k_cache.stride(), *v_cache.stride(), lengths.stride(0), Hkv, sm_scale * LOG2E,
        D=D, GROUP=Hq // Hkv, BLOCK_G=block_g, BLOCK_S=BLOCK_S, BLOCK_D=block_d,
        num_stages=3 if block_d * q.element_size() <= 512 else 2,  # all that are under way share one SM's memory
    )  # fmt: skip
    if parts > 1:
        combine_kernel[(B * Hq,)](
            results, log_sums, lengths, out, lengths.stride(0), Hq, parts,
            D=D, PARTS=triton.next_power_of_2(parts), BLOCK_S=BLOCK_S, BLOCK_D=block_d,
        )  # fmt: skip
    return out
    # student:
    # # TODO: allocate the result, choose BLOCK_S and BLOCK_D (tl.arange wants a power of two), launch, return it.
    # raise NotImplementedError(
    #     "decode_attention is not written yet: fill in the TODOs in this file, and delete this line"
    # )
    # end
