"""Dropout: fill in the TODOs, then run `gradekit check` in this folder. README.md explains the task."""

import torch
import triton
import triton.language as tl


@triton.jit
def dropout_kernel(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    """Writes BLOCK elements: each 0, or divided by 1 - p."""
    # TODO: which elements are mine? Load them, and go to float32.
    # TODO: tl.rand(seed, counters) draws numbers from 0 to 1, one for each counter. Which counters?
    # TODO: choose with tl.where, and store.


class Dropout(torch.autograd.Function):
    """Dropout that autograd can differentiate."""

    @staticmethod
    def forward(ctx, x, p, seed):
        """Return x with some elements set to 0, and the others scaled by 1 / (1 - p)."""
        # TODO: allocate the result, launch. What must backward know, to drop the same elements? (It is not much.)
        raise NotImplementedError("dropout is not written yet: fill in the TODOs in this file, and delete this line")

    @staticmethod
    def backward(ctx, dout):
        """Return the gradient of x, and None for p and seed; dout has the result's shape, and any strides."""
        # TODO: the derivative of what was kept is 1 / (1 - p), and of what was dropped, 0.
        raise NotImplementedError("the backward pass is not written yet")


def dropout(x: torch.Tensor, p: float, seed: int) -> torch.Tensor:
    """Return x, each element with probability p replaced by 0 and otherwise divided by 1 - p; 0 <= p < 1."""
    return Dropout.apply(x, p, seed)
