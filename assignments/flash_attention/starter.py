"""Flash attention: fill in the TODOs, then run `gradekit check` in this folder. README.md explains the task."""

import torch
import triton
import triton.language as tl


@triton.jit
def forward_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, log_sum_ptr, S, sm_scale,
    CAUSAL: tl.constexpr, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    """Computes BLOCK_M rows of one head's result, and for each the logarithm of the sum of its weights."""
    # TODO: which rows of which head are mine? Load this tile of q.
    # TODO: walk along k and v in tiles of BLOCK_N rows: scores, their running maximum, the running sum of the weights,
    #       the running result. Which scores must be -inf? Compute in float32.
    # TODO: divide and store; the backward pass needs maximum + log(sum), too.


class Attention(torch.autograd.Function):
    """Attention with a backward pass of its own."""

    @staticmethod
    def forward(ctx, q, k, v, causal, sm_scale):
        """The result; what `backward` needs goes to ctx.save_for_backward, numbers to ctx itself."""
        # TODO: allocate the result, choose tiles and a grid, launch, return the result.
        raise NotImplementedError("attention is not written yet: fill in the TODOs in this file, and delete this line")

    @staticmethod
    def backward(ctx, grad):
        """The gradients of q, k and v, and None for each of the two numbers."""
        # TODO: make the weights again, tile by tile, from the scores and what you saved; do not store them.
        raise NotImplementedError("the backward pass is not written yet")


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool, sm_scale: float) -> torch.Tensor:
    """Return softmax(sm_scale * q k^T) v for each head of q, k, v [B, H, S, D], as a new tensor; strides are any.

    Where `causal`, query i looks at keys 0 to i alone. Differentiable in q, k and v.
    """
    return Attention.apply(q, k, v, causal, sm_scale)
