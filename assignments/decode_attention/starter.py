"""Decode attention: fill in the TODOs, then run `gradekit check` in this folder. README.md explains the task."""

import torch
import triton
import triton.language as tl


@triton.jit
def decode_kernel(
    q_ptr, k_ptr, v_ptr, lengths_ptr, out_ptr,
    q_stride_b, q_stride_h, q_stride_d,
    k_stride_b, k_stride_h, k_stride_s, k_stride_d,
    v_stride_b, v_stride_h, v_stride_s, v_stride_d,
    lengths_stride, q_heads, kv_heads, sm_scale,
    D: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_D: tl.constexpr,
):
    """Computes one row of D results: for one query head of one sequence."""
    # TODO: which sequence b and which query head are mine, and which head of the cache belongs to it?
    # TODO: load the query and the length.
    # TODO: walk along the cache up to the length, in tiles of BLOCK_S positions: scores, the highest of all so far,
    #       the sum of the weights so far, the weighted sum of the values so far. Compute in float32.
    # TODO: divide, and store the row.


def decode_attention(
    q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, lengths: torch.Tensor, sm_scale: float
) -> torch.Tensor:
    """Return softmax(sm_scale * q K^T) V as a new [B, Hq, D] tensor; of sequence b, `lengths[b]` positions count.

    q is [B, Hq, D], the caches are [B, Hkv, S, D] of q's dtype, lengths is int32 [B]; strides are any.
    """
    # TODO: allocate the result, choose BLOCK_S and BLOCK_D (tl.arange wants a power of two), launch, return it.
    raise NotImplementedError(
        "decode_attention is not written yet: fill in the TODOs in this file, and delete this line"
    )
