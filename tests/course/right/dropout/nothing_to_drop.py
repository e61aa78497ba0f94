"""Where p is 0 nothing is dropped: forward hands back a copy, and backward the gradient as it came."""

import torch
import triton
import triton.language as tl


@triton.jit
def drop_kernel(given_ptr, kept_ptr, count, chance, seed, SIZE: tl.constexpr):
    place = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    inside = place < count
    stays = tl.rand(seed, place) >= chance
    given = tl.load(given_ptr + place, mask=inside, other=0.0).to(tl.float32)
    tl.store(kept_ptr + place, tl.where(stays, given / (1 - chance), 0.0), mask=inside)


def drop(given, chance, seed):
    given = given.contiguous()
    kept = torch.empty_like(given)
    if given.numel():
        drop_kernel[(triton.cdiv(given.numel(), 256),)](given, kept, given.numel(), chance, seed, SIZE=256)
    return kept


class Drop(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, chance, seed):
        ctx.chance, ctx.seed = chance, seed
        return x.clone() if chance == 0 else drop(x, chance, seed)

    @staticmethod
    def backward(ctx, upstream):
        return upstream if ctx.chance == 0 else drop(upstream, ctx.chance, ctx.seed), None, None


def dropout(x, p, seed):
    return Drop.apply(x, p, seed)
