"""Dropout whose mask is never stored: the seed is the mask, for the forward pass and for the backward pass."""

import torch
import triton
import triton.language as tl

# solution:
BLOCK = 1024


@triton.jit(do_not_specialize=["seed"])  # else a seed of 1, or of a multiple of 16, would be compiled for itself
def dropout_kernel(x_ptr, out_ptr, numel, p, scale, seed, BLOCK: tl.constexpr):
    """Keeps an element where the number drawn for its place is at least p."""
    # One draw of Philox gives four numbers. tl.rand throws three of them away; rand4x keeps them, for four neighbours.
    draws = tl.program_id(0) * (BLOCK // 4) + tl.arange(0, BLOCK // 4)
    first, second, third, fourth = tl.rand4x(seed, draws)
    random = tl.join(tl.join(first, third), tl.join(second, fourth)).reshape(BLOCK)
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < numel
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    # where, not a product with 0: what is dropped may be infinite.
    out = tl.where(random >= p, x * scale, 0.0)
    tl.store(out_ptr + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


def dropped(x, p, seed):
    """x with the elements dropped that `seed` says, those kept scaled; contiguous, whatever x is."""
    x = x.contiguous()  # so that an element's number in memory is its place, and the mask does not depend on strides
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    numel = x.numel()
    dropout_kernel[(triton.cdiv(numel, BLOCK),)](x, out, numel, p, 1 / (1 - p), seed, BLOCK=BLOCK)
    return out


# student:
# @triton.jit
# def dropout_kernel(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
#     """Writes BLOCK elements: each 0, or divided by 1 - p."""
#     # TODO: which elements are mine? Load them, and go to float32.
#     # TODO: tl.rand(seed, counters) draws numbers from 0 to 1, one for each counter. Which counters?
#     # TODO: choose with tl.where, and store.
# end


class Dropout(torch.autograd.Function):
    """Dropout that autograd can differentiate."""

    @staticmethod
    def forward(ctx, x, p, seed):
        """Return x with some elements set to 0, and the others scaled by 1 / (1 - p)."""
        # solution:
        ctx.p, ctx.seed = p, seed
        return dropped(x, p, seed)
        # student:
        # # TODO: allocate the result, launch. What must backward know, to drop the same elements? (It is not much.)
        # raise NotImplementedError("dropout is not written yet: fill in the TODOs in this file, and delete this line")
        # end

    @staticmethod
    def backward(ctx, dout):
        """Return the gradient of x, and None for p and seed; dout has the result's shape, and any strides."""
        # solution:
        return dropped(dout, ctx.p, ctx.seed), None, None
        # student:
        # # TODO: the derivative of what was kept is 1 / (1 - p), and of what was dropped, 0.
        # raise NotImplementedError("the backward pass is not written yet")
        # end


def dropout(x: torch.Tensor, p: float, seed: int) -> torch.Tensor:
    """Return x, each element with probability p replaced by 0 and otherwise divided by 1 - p; 0 <= p < 1."""
    return Dropout.apply(x, p, seed)
