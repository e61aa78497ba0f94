"""Integer arithmetic: wrap-around, signs of quotients, shifts, unsigned types, bits, mixed widths."""

import torch
import triton
import triton.language as tl

from corpus.case import case, filled, given, integers, mask

SIGNED = (torch.int8, torch.int16, torch.int32, torch.int64)
UNSIGNED = (torch.uint8, torch.uint16, torch.uint32, torch.uint64)
N = 64


def each_dtype(kernel, dtypes, outputs, oracle=None, **makers):
    """One entry for each dtype, with inputs x and y of it and outputs of it."""
    for dtype in dtypes:
        arguments = {name: filled(N, dtype=dtype) for name in outputs}
        pair = {"x": integers(N, dtype=dtype), "y": integers(N, dtype=dtype)}
        case(name=str(dtype)[6:], **arguments, **(pair | {n: m(dtype) for n, m in makers.items()}), N=N,
             oracle=oracle)(kernel)  # fmt: skip


@triton.jit
def wrap_around(added, taken, times, negated, x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(added + i, a + b)
    tl.store(taken + i, a - b)
    tl.store(times + i, a * b)
    tl.store(negated + i, -a)


each_dtype(wrap_around, SIGNED + UNSIGNED, ("added", "taken", "times", "negated"))


@triton.jit
def quotients(quotient, remainder, x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(quotient + i, a // b)
    tl.store(remainder + i, a % b)


def divisor(dtype):
    return given(*([3, -3, 7, -1, 2, -100, 1, 5] * (N // 8)), dtype=dtype)


def positive_divisor(dtype):
    return given(*([3, 7, 1, 2, 100, 5, 127, 9] * (N // 8)), dtype=dtype)


def off_the_edge(dtype):
    return integers(N, dtype=dtype, low=-100, high=100)


each_dtype(quotients, SIGNED, ("quotient", "remainder"), x=off_the_edge, y=divisor)
each_dtype(quotients, UNSIGNED, ("quotient", "remainder"), y=positive_divisor)


@triton.jit
def shifts(left, right, x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(left + i, a << b)
    tl.store(right + i, a >> b)


def amount(dtype):
    return integers(N, dtype=dtype, low=0, high=torch.iinfo(dtype).bits)


each_dtype(shifts, SIGNED + UNSIGNED, ("left", "right"), y=amount)


@triton.jit
def bits(both, either, one, flipped, x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(both + i, a & b)
    tl.store(either + i, a | b)
    tl.store(one + i, a ^ b)
    tl.store(flipped + i, ~a)


def _bits(a):
    x, y = a["x"].long(), a["y"].long()
    found = {"both": x & y, "either": x | y, "one": x ^ y, "flipped": ~x}
    return {name: value.to(a["x"].dtype) for name, value in found.items()}


each_dtype(bits, (torch.int8, torch.uint16, torch.int64), ("both", "either", "one", "flipped"), _bits)


@triton.jit
def order_relations(smaller, larger, below, atmost, same, x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(smaller + i, tl.minimum(a, b))
    tl.store(larger + i, tl.maximum(a, b))
    tl.store(below + i, (a < b).to(a.dtype))
    tl.store(atmost + i, (a >= b).to(a.dtype))
    tl.store(same + i, ((a == b) | (a != 3)).to(a.dtype))


each_dtype(order_relations, (torch.int8, torch.int64, torch.uint8, torch.uint32, torch.uint64),
           ("smaller", "larger", "below", "atmost", "same"))  # fmt: skip


@case(out=filled(N, dtype=torch.int32), magnitude=filled(N, dtype=torch.int32), x=integers(N, low=-9, high=9), N=N)
@triton.jit
def sign_and_magnitude(out, magnitude, x, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    tl.store(out + i, tl.where(a > 0, 1, tl.where(a < 0, -1, 0)))
    tl.store(magnitude + i, tl.abs(a))


@case(out=filled(N, dtype=torch.int64), x=integers(N, dtype=torch.int8), y=integers(N, dtype=torch.int32),
      z=integers(N, dtype=torch.uint8), N=N)  # fmt: skip
@triton.jit
def mixed_widths(out, x, y, z, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b, c = tl.load(x + i), tl.load(y + i), tl.load(z + i)
    tl.store(out + i, (a + b).to(tl.int64) * c + (a + c) - (z.dtype.element_ty.primitive_bitwidth + c))


@case(high=filled(N, dtype=torch.int32), x=integers(N, dtype=torch.int32), y=integers(N, dtype=torch.int32), N=N,
      oracle=lambda a: {"high": ((a["x"].long() & 0xFFFFFFFF) * (a["y"].long() & 0xFFFFFFFF) >> 32).to(torch.int32)})  # fmt: skip
@triton.jit
def high_half(high, x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(high + i, tl.umulhi(tl.load(x + i), tl.load(y + i)))


def _high_half_of_64(a):
    pairs = zip(a["x"].tolist(), a["y"].tolist(), strict=True)
    products = [((p % 2**64) * (q % 2**64) >> 64) for p, q in pairs]
    return {"high": torch.tensor([p - 2**64 if p >= 2**63 else p for p in products])}


case(name="int64", high=filled(N, dtype=torch.int64), x=integers(N, dtype=torch.int64),
     y=integers(N, dtype=torch.int64), N=N, oracle=_high_half_of_64)(high_half)  # fmt: skip


@case(out=filled(N, dtype=torch.int8), x=mask(N), y=mask(N), N=N)
@triton.jit
def truth(out, x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i).to(tl.int1), tl.load(y + i).to(tl.int1)
    tl.store(
        out + i, (a & ~b).to(tl.int8) + (a | b).to(tl.int8) * 2 + (a ^ b).to(tl.int8) * 4 + (a == b).to(tl.int8) * 8
    )


@case(out=filled(8, dtype=torch.int32), n=1000, m=7)
@triton.jit
def scalar_arithmetic(out, n, m):
    tl.store(out, tl.cdiv(n, m))
    tl.store(out + 1, n % m)
    tl.store(out + 2, n * -m)
    tl.store(out + 3, (n << 3) | 1)
    tl.store(out + 4, min(n, m) - max(n, m))
    tl.store(out + 5, (n > m) and (n != 3))
    tl.store(out + 6, not (n > m))


@case(out=filled(4, dtype=torch.int64), n=2**40 + 3, m=-5)
@triton.jit
def scalar_of_64_bits(out, n, m):
    tl.store(out, n * n)
    tl.store(out + 1, n // m)
    tl.store(out + 2, n % m)
    tl.store(out + 3, (n >> 33) + m)
