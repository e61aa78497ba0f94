"""Integer arithmetic: wrap-around, signs of quotients, shifts, unsigned types, bits, mixed widths."""

import torch
import triton
import triton.language as tl

from corpus.case import case, each_dtype, elementwise, filled, given, integers, lanes, mask

SIGNED = (torch.int8, torch.int16, torch.int32, torch.int64)
UNSIGNED = (torch.uint8, torch.uint16, torch.uint32, torch.uint64)
N = 64


def any_of(dtype):
    return integers(N, dtype=dtype)


def divisor(dtype):
    return given(*([3, -3, 7, -1, 2, -100, 1, 5] * (N // 8)), dtype=dtype)


def positive_divisor(dtype):
    return given(*([3, 7, 1, 2, 100, 5, 127, 9] * (N // 8)), dtype=dtype)


def off_the_edge(dtype):
    return integers(N, dtype=dtype, low=-100, high=100)


def amount(dtype):
    return integers(N, dtype=dtype, low=0, high=torch.iinfo(dtype).bits)


WRAPS = {"added": "a + b", "taken": "a - b", "times": "a * b", "negated": "-a"}
each_dtype(lanes("wrap_around", WRAPS), SIGNED + UNSIGNED, [*WRAPS], x=any_of, y=any_of)
quotients = lanes("quotients", {"quotient": "a // b", "remainder": "a % b"})
each_dtype(quotients, SIGNED, ("quotient", "remainder"), x=off_the_edge, y=divisor)
each_dtype(quotients, UNSIGNED, ("quotient", "remainder"), x=any_of, y=positive_divisor)
SHIFTS = {"left": "a << b", "right": "a >> b"}
each_dtype(lanes("shifts", SHIFTS), SIGNED + UNSIGNED, [*SHIFTS], x=any_of, y=amount)


def _bits(a):
    x, y = a["x"].long(), a["y"].long()
    found = {"both": x & y, "either": x | y, "one": x ^ y, "flipped": ~x}
    return {name: value.to(a["x"].dtype) for name, value in found.items()}


BITS = {"both": "a & b", "either": "a | b", "one": "a ^ b", "flipped": "~a"}
each_dtype(lanes("bits", BITS), (torch.int8, torch.uint16, torch.int64), [*BITS], oracle=_bits, x=any_of, y=any_of)
ORDER = {
    "smaller": "tl.minimum(a, b)", "larger": "tl.maximum(a, b)", "below": "(a < b).to(a.dtype)", "atmost": "(a >= b).to(a.dtype)",
    "same": "((a == b) | (a != 3)).to(a.dtype)",
}
each_dtype(lanes("order_relations", ORDER), (torch.int8, torch.int64, *UNSIGNED[::2], torch.uint64), [*ORDER], x=any_of, y=any_of)
elementwise("sign_and_magnitude", {"x": integers(N, low=-9, high=9)}, {
    "out": "tl.where(a > 0, 1, tl.where(a < 0, -1, 0))", "magnitude": "tl.abs(a)",
}, dtype=torch.int32)
MIXED = {"x": integers(N, dtype=torch.int8), "y": integers(N, dtype=torch.int32), "z": integers(N, dtype=torch.uint8)}
elementwise("mixed_widths", MIXED, {
    "out": "(a + b).to(tl.int64) * c + (a + c) - (z.dtype.element_ty.primitive_bitwidth + c)",
}, dtype=torch.int64)
high_half = elementwise(
    "high_half", {"x": any_of(torch.int32), "y": any_of(torch.int32)}, {"high": "tl.umulhi(a, b)"}, dtype=torch.int32,
    oracle=lambda a: {"high": ((a["x"].long() & 0xFFFFFFFF) * (a["y"].long() & 0xFFFFFFFF) >> 32).to(torch.int32)},
)


def _high_half_of_64(a):
    pairs = zip(a["x"].tolist(), a["y"].tolist(), strict=True)
    products = [((p % 2**64) * (q % 2**64) >> 64) for p, q in pairs]
    return {"high": torch.tensor([p - 2**64 if p >= 2**63 else p for p in products])}


each_dtype(high_half, (torch.int64,), ("high",), oracle=_high_half_of_64, x=any_of, y=any_of)


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
