"""Moving elements about: reshape, transpose, join, split, cat, flip, sort, gather, histogram."""

import torch
import triton
import triton.language as tl

from corpus.case import VERSION, case, filled, integers, normal, order

N = 32


@case(out=filled(16, 8), x=normal(8, 16))
@triton.jit
def transposed(out, x):
    a = tl.load(x + tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :])
    tl.store(out + tl.arange(0, 16)[:, None] * 8 + tl.arange(0, 8)[None, :], tl.trans(a))


@case(out=filled(8, 2, 4), also=filled(4, 8, 2), x=normal(2, 4, 8))
@triton.jit
def permuted(out, also, x):
    i = tl.arange(0, 64)
    a = tl.reshape(tl.load(x + i), (2, 4, 8))
    tl.store(out + i, tl.reshape(tl.permute(a, (2, 0, 1)), (64,)))
    tl.store(also + i, tl.reshape(tl.permute(a, 1, 2, 0), (64,)))


@case(out=filled(4, 8), flat=filled(32), x=normal(32))
@triton.jit
def reshaped(out, flat, x):
    i = tl.arange(0, 32)
    a = tl.load(x + i).reshape(4, 8)
    tl.store(out + tl.arange(0, 4)[:, None] * 8 + tl.arange(0, 8)[None, :], a + tl.arange(0, 8)[None, :])
    tl.store(flat + i, tl.ravel(tl.trans(a)))
    tl.store(flat + i, a.reshape(2, 2, 8).reshape(32) * 2, mask=i > 20)


@case(out=filled(2 * N), woven=filled(2 * N), x=normal(N), y=normal(N), N=N)
@triton.jit
def joined(out, woven, x, y, N: tl.constexpr):
    i, j = tl.arange(0, N), tl.arange(0, 2 * N)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(out + i[:, None] * 2 + tl.arange(0, 2)[None, :], tl.join(a, b))
    tl.store(woven + j, tl.interleave(a, b))


@case(even=filled(N), odd=filled(N), top=filled(4, 4), x=normal(2 * N), N=N)
@triton.jit
def split_apart(even, odd, top, x, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.split(tl.load(x + tl.arange(0, 2 * N)).reshape(N, 2))
    tl.store(even + i, a)
    tl.store(odd + i, b)
    c, d = tl.split(a.reshape(4, 4, 2))
    tl.store(top + tl.arange(0, 4)[:, None] * 4 + tl.arange(0, 4)[None, :], c * d)


@case(out=filled(2 * N, dtype=torch.int32), x=integers(N), y=integers(N), N=N,
      oracle=lambda a: {"out": torch.cat((a["x"], a["y"])).sort().values})  # fmt: skip
@triton.jit
def concatenated_in_any_order(out, x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    both = tl.cat(tl.load(x + i), tl.load(y + i), can_reorder=True)
    tl.store(out + tl.arange(0, 2 * N), tl.sort(both))


@case(out=filled(N), rows=filled(4, 8), columns=filled(4, 8), x=normal(N), N=N)
@triton.jit
def flipped(out, rows, columns, x, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    tl.store(out + i, tl.flip(a, 0))
    at = tl.arange(0, 4)[:, None] * 8 + tl.arange(0, 8)[None, :]
    tl.store(columns + at, tl.flip(a.reshape(4, 8), 1))
    tl.store(rows + at, tl.flip(a.reshape(4, 8), 0))


@case(up=filled(4, N), down=filled(4, N), x=normal(4, N), N=N)
@case(name="int32", up=filled(4, N, dtype=torch.int32), down=filled(4, N, dtype=torch.int32),
      x=integers(4, N, low=-9, high=9), N=N)  # fmt: skip
@case(name="float16", up=filled(4, N, dtype=torch.float16), down=filled(4, N, dtype=torch.float16),
      x=normal(4, N, dtype=torch.float16), N=N)  # fmt: skip
@triton.jit
def sorted_rows(up, down, x, N: tl.constexpr):
    at = tl.arange(0, 4)[:, None] * N + tl.arange(0, N)[None, :]
    a = tl.load(x + at)
    tl.store(up + at, tl.sort(a))
    tl.store(down + at, tl.sort(a, descending=True))


@case(out=filled(4, 8), x=normal(4, N), N=N, oracle=lambda a: {"out": a["x"].topk(8, 1).values})
@triton.jit
def largest_eight(out, x, N: tl.constexpr):
    r = tl.arange(0, 4)[:, None]
    a = tl.load(x + r * N + tl.arange(0, N)[None, :])
    tl.store(out + r * 8 + tl.arange(0, 8)[None, :], tl.topk(a, 8))


@case(out=filled(N), also=filled(8, 4), x=normal(N), index=order(N), N=N)
@triton.jit
def gathered(out, also, x, index, N: tl.constexpr):
    i = tl.arange(0, N)
    a, at = tl.load(x + i), tl.load(index + i)
    tl.store(out + i, tl.gather(a, at, 0))
    picked = tl.gather(a.reshape(8, 4), at.reshape(8, 4) % 8, axis=0)
    picked += tl.gather(a.reshape(8, 4), at.reshape(8, 4) % 4, axis=1)
    tl.store(also + tl.arange(0, 8)[:, None] * 4 + tl.arange(0, 4)[None, :], picked)


@case(out=filled(16, dtype=torch.int32), some=filled(16, dtype=torch.int32), x=integers(128, low=0, high=16), N=128,
      oracle=lambda a: {"out": a["x"].bincount(minlength=16).int(), "some": a["x"][:100].bincount(minlength=16).int()})  # fmt: skip
@triton.jit
def histograms(out, some, x, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    bins = tl.arange(0, 16)
    tl.store(out + bins, tl.histogram(a, 16))
    tl.store(some + bins, tl.histogram(a, 16, mask=i < 100))


@case(out=filled(4, 8), x=normal(8), y=normal(4))
@triton.jit
def axes_added(out, x, y):
    a, b = tl.load(x + tl.arange(0, 8)), tl.load(y + tl.arange(0, 4))
    c = tl.expand_dims(a, 0) * tl.expand_dims(b, [1])
    tl.store(out + tl.arange(0, 4)[:, None] * 8 + tl.arange(0, 8)[None, :], c)


@case(out=filled(4, 4, dtype=torch.int32), half=filled(4, dtype=torch.float16))
@triton.jit
def made_from_nothing(out, half):
    i = tl.arange(0, 4)
    at = i[:, None] * 4 + i[None, :]
    tl.store(out + at, tl.full((4, 4), 3, tl.int32) + tl.zeros((4, 4), tl.int32) + tl.zeros_like(at))
    tl.store(half + i, tl.full((4,), -1.5, tl.float16) + tl.arange(4, 8))


if VERSION >= (3, 9):

    @case(out=filled(2 * N), column=filled(N), x=normal(N), y=normal(N), N=N)
    @triton.jit
    def concatenated_in_order(out, column, x, y, N: tl.constexpr):
        i = tl.arange(0, N)
        a = tl.load(x + i)
        tl.store(out + tl.arange(0, 2 * N), tl.cat(a, tl.load(y + i)))
        tl.store(column + i, tl.squeeze(tl.unsqueeze(a, 1) * 2, 1))
