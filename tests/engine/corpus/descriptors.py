"""Tensor descriptors made on the device: loads past the edges, stores, padding, reductions into memory, gather."""

import torch
import triton
import triton.language as tl

from corpus.case import VERSION, case, filled, normal


@case(grid=(3, 2), out=filled(40, 32), x=normal(40, 32), rows=40, columns=32, R=16, C=16)
@triton.jit
def descriptor_tiles(out, x, rows, columns, R: tl.constexpr, C: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [R, C])
    target = tl.make_tensor_descriptor(out, [rows, columns], [columns, 1], [R, C])
    r, c = tl.program_id(0) * R, tl.program_id(1) * C
    target.store([r, c], source.load([r, c]) * 2)


@case(out=filled(16, 16), x=normal(12, 12), B=16)
@triton.jit
def descriptor_past_the_edges(out, x, B: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [12, 12], [12, 1], [B, B])
    i = tl.arange(0, B)
    tl.store(out + i[:, None] * B + i[None, :], source.load([4, -4]))


@case(out=filled(4, 8, 8), x=normal(4, 8, 8), B=8)
@triton.jit
def descriptor_of_three_dimensions(out, x, B: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [4, 8, 8], [64, 8, 1], [2, B, B])
    target = tl.make_tensor_descriptor(out, [4, 8, 8], [64, 8, 1], [2, B, B])
    tl.store_tensor_descriptor(target, [2, 0, 0], tl.load_tensor_descriptor(source, [0, 0, 0]))
    tl.store_tensor_descriptor(target, [0, 0, 0], tl.load_tensor_descriptor(source, [2, 0, 0]))


@case(out=filled(32, dtype=torch.float16), x=normal(64, dtype=torch.float16), B=32)
@triton.jit
def descriptor_of_one_dimension(out, x, B: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [64], [1], [B])
    tl.make_tensor_descriptor(out, [32], [1], [B]).store([0], source.load([B]) + source.load([0]))


def _padded(a):
    block = torch.full((16, 16), 99.0)
    block[:8, :12] = a["x"][4:, :]
    return {"out": block}


@case(out=filled(16, 16), x=normal(12, 12), B=16, oracle=_padded)
@triton.jit
def descriptor_that_pads_with_nan(out, x, B: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [12, 12], [12, 1], [B, B], padding_option="nan")
    a = source.load([4, 0])
    i = tl.arange(0, B)
    tl.store(out + i[:, None] * B + i[None, :], tl.where(a == a, a, 99.0))  # noqa: PLR0124  false for NaN


def _reduced(a):
    total = sum(a["x"][16 * k : 16 * k + 16] for k in range(4))
    high = torch.stack([a["x"][16 * k : 16 * k + 16] for k in range(4)]).amax(0)
    return {"total": a["total"] + total, "high": torch.maximum(a["high"], high.int())}


@case(grid=(4,), total=filled(16, 16), high=filled(16, 16, dtype=torch.int32, value=0),
      x=lambda generator: torch.randint(-9, 9, (64, 16), generator=generator).float(), B=16, oracle=_reduced,
      not_interpreted="the interpreter has no atomic descriptor operations")  # fmt: skip
@triton.jit
def descriptor_reductions(total, high, x, B: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [64, 16], [16, 1], [B, B])
    a = source.load([tl.program_id(0) * B, 0])
    tl.make_tensor_descriptor(total, [16, 16], [16, 1], [B, B]).atomic_add([0, 0], a)
    tl.make_tensor_descriptor(high, [16, 16], [16, 1], [B, B]).atomic_max([0, 0], a.to(tl.int32))


assert VERSION >= (3, 6)
