"""Integers on engine values: exact in every width, signed or unsigned, and lazy where the result is Affine.

Every function takes operands of one TTIR integer type, its width in `bits` and the `shape` (count, *tile), and returns
an integer value (int, Affine or Tensor of the width's dtype). Numbers are held as the signed integer with their bits.
"""

import functools
import operator
from collections.abc import Callable, Sequence

import numpy
import torch
from torch import Tensor

from gradekit.engine.values import (
    INTEGER,
    UNSIGNED,
    Affine,
    Below,
    Integer,
    Value,
    add,
    affine,
    against_zero,
    dense,
    fits,
    moved,
    scale,
    simplify,
    span,
    wrap,
)

Shape = Sequence[int]
IntegerFunction = Callable[[Integer, Integer, int, Shape], Integer]

ON_ONE_BIT = {
    "arith.addi": "arith.xori", "arith.subi": "arith.xori", "arith.muli": "arith.andi",
    "arith.minui": "arith.andi", "arith.maxui": "arith.ori", "arith.minsi": "arith.ori", "arith.maxsi": "arith.andi",
    "arith.andi": "arith.andi", "arith.ori": "arith.ori", "arith.xori": "arith.xori",
}  # fmt: skip
"""What arithmetic on i1 is, where 1 + 1 is 0 and the signed reading of 1 is -1: so a card's compiler has it, too."""


def tensor(value: Value, bits: int, shape: Shape) -> Tensor:
    """`value` as a lazily broadcast tensor of the width's dtype."""
    return dense(value, INTEGER[bits], shape)


def unsigned(value: Tensor) -> Tensor:
    """The unsigned reading of a tensor of at most 32 bits, as int64."""
    return value.view(UNSIGNED[value.element_size()]).to(torch.int64)


def signed(value: Tensor, bits: int) -> Tensor:
    """The low `bits` of an int64 tensor, as the width's own dtype."""
    return value.to(INTEGER[bits])


# --- sums and products: lazy where they can be ------------------------------------------------------------------------


def _sum(sign: int) -> IntegerFunction:
    def apply(a: Integer, b: Integer, bits: int, shape: Shape) -> Integer:
        if isinstance(a, int) and isinstance(b, int):
            return wrap(a + sign * b, bits)
        if isinstance(b, int) and isinstance(a, Affine):
            total = moved(a, sign * b)
        elif isinstance(a, int) and isinstance(b, Affine) and sign > 0:
            total = moved(b, a)
        elif _worth_keeping_lazy(a, b):
            total = add(affine(a, len(shape)), affine(b, len(shape)), shape, sign)
        else:
            return torch.add(tensor(a, bits, shape), tensor(b, bits, shape), alpha=sign)
        if fits(total.low, total.high, bits) or fits(*span(total, shape), bits):
            return simplify(total)
        return torch.add(tensor(a, bits, shape), tensor(b, bits, shape), alpha=sign)

    return apply


addi, subi = _sum(1), _sum(-1)


def _worth_keeping_lazy(a: Integer, b: Integer) -> bool:
    """An Affine stays one; two tensors do where adding them would make a larger tensor than either."""
    for x, y in ((a, b), (b, a)):
        if isinstance(x, Tensor):
            return isinstance(y, Affine) and any(s and n == 1 for s, n in zip(y.steps, x.shape, strict=True))
    return True


def muli(a: Integer, b: Integer, bits: int, shape: Shape) -> Integer:
    """a * b"""
    if isinstance(a, int) and isinstance(b, int):
        return wrap(a * b, bits)
    if isinstance(a, int):
        a, b = b, a
    if isinstance(a, Affine) and isinstance(b, int):
        product = scale(a, b)
        if fits(product.low, product.high, bits) or fits(*span(product, shape), bits):
            return simplify(product)
    return tensor(a, bits, shape) * tensor(b, bits, shape)


# --- operations by element --------------------------------------------------------------------------------------------


def _by_element(
    tensors: Callable[[Tensor, Tensor], Tensor], numbers: Callable[[int, int], int] | None = None
) -> IntegerFunction:
    """The operation that `tensors` is on tensors of the width's dtype, and `numbers` on two numbers."""

    def apply(a: Integer, b: Integer, bits: int, shape: Shape) -> Integer:
        if not (isinstance(a, int) and isinstance(b, int)):
            return tensors(tensor(a, bits, shape), tensor(b, bits, shape))
        return wrap(numbers(a, b), bits) if numbers else int(tensors(tensor(a, bits, [1]), tensor(b, bits, [1])))

    return apply


def _unsigned_or(of_nonnegative: IntegerFunction, tensors: Callable[[Tensor, Tensor], Tensor]) -> IntegerFunction:
    """An unsigned operation, by the signed one where bounds show that no element is below zero."""
    by_element = _by_element(tensors)

    def apply(a: Integer, b: Integer, bits: int, shape: Shape) -> Integer:
        return (of_nonnegative if _is_nonnegative(a) and _is_nonnegative(b) else by_element)(a, b, bits, shape)

    return apply


def _is_nonnegative(value: Integer) -> bool:
    return value >= 0 if isinstance(value, int) else isinstance(value, Affine) and value.low >= 0


def _width(x: Tensor) -> int:
    return 8 * x.dtype.itemsize


# Division. The remainder has the dividend's sign. Dividing by zero is undefined, and the smallest number by -1
# overflows: neither may stop the grader, where the processor would raise a signal.


def _divided(
    tensors: Callable[[Tensor, Tensor], Tensor],
    by_minus_one: Callable[[Tensor], Tensor],
    numbers: Callable[[int, int], int],
) -> IntegerFunction:
    def divide(x: Tensor, y: Tensor) -> Tensor:
        if y.numel() == 1 and int(y) not in (0, -1):
            return tensors(x, y)
        harmless = torch.where((y == 0) | (y == -1), 1, y)
        return torch.where(y == -1, by_minus_one(x), tensors(x, harmless))

    return _by_element(divide, lambda x, y: numbers(x, y or 1))


_truncate = functools.partial(torch.div, rounding_mode="trunc")
_divide = _divided(_truncate, torch.neg, lambda x, y: abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1))
_remain = _divided(torch.fmod, torch.zeros_like, lambda x, y: abs(x) % abs(y) * (1 if x >= 0 else -1))


def divsi(a: Integer, b: Integer, bits: int, shape: Shape) -> Integer:
    """a / b, signed, truncated towards zero."""
    if not (isinstance(a, Affine) and isinstance(b, int) and b > 0 and a.low >= 0):
        return _divide(a, b, bits, shape)
    low, high = a.low // b, a.high // b
    return low if low == high else _bounded(_truncate(tensor(a, bits, shape), b), low, high, shape)


def remsi(a: Integer, b: Integer, bits: int, shape: Shape) -> Integer:
    """The remainder of `divsi`."""
    if not (isinstance(a, Affine) and isinstance(b, int) and b > 0 and a.low >= 0):
        return _remain(a, b, bits, shape)
    whole = a.low // b
    if whole == a.high // b:
        return moved(a, -whole * b) if whole else a
    return _bounded(torch.fmod(tensor(a, bits, shape), b), 0, min(a.high, b - 1), shape)


def _bounded(value: Tensor, low: int, high: int, shape: Shape) -> Affine:
    """A tensor of which one knows the bounds."""
    return Affine(value.to(torch.int64), (0,) * len(shape), low, high)


def _divide_unsigned(x: Tensor, y: Tensor) -> Tensor:
    """Of 64 bits: halve, divide, double, correct; a divisor of 2**63 or more goes at most once."""
    y = torch.where(y == 0, 1, y)
    if _width(x) < 64:
        return signed(torch.div(unsigned(x), unsigned(y), rounding_mode="floor"), _width(x))
    quotient = torch.div(_shift_right(x, torch.ones_like(x)), y, rounding_mode="trunc") * 2
    quotient = quotient + (~_less_unsigned(x - quotient * y, y)).to(torch.int64)
    return torch.where(y < 0, (~_less_unsigned(x, y)).to(torch.int64), quotient)


def _less_unsigned(x: Tensor, y: Tensor) -> Tensor:
    """x < y as unsigned: flipping the top bit turns unsigned order into signed order."""
    top = torch.iinfo(x.dtype).min
    return (x ^ top) < (y ^ top)


def shli(a: Integer, b: Integer, bits: int, shape: Shape) -> Integer:
    """a << b; 0 where b is not below the width."""
    if isinstance(b, int) and 0 <= b < bits:
        return muli(a, wrap(1 << b, bits), bits, shape)
    return _by_element(_within_the_width(torch.bitwise_left_shift))(a, b, bits, shape)


def _within_the_width(shift: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    """A shift by less than the width, as one by any number: 0 for all others."""

    def apply(x: Tensor, count: Tensor) -> Tensor:
        outside = (count < 0) | (count >= _width(x))
        return torch.where(outside, 0, shift(x, torch.where(outside, 0, count))).to(x.dtype)

    return apply


def _shift_right(x: Tensor, count: Tensor) -> Tensor:
    """Filled with zeros."""
    if _width(x) < 64:
        return signed(unsigned(x) >> count, _width(x))
    kept = torch.where(count == 0, -1, (1 << (64 - count.clamp(min=1))) - 1)
    return (x >> count) & kept


_logical_shift = _within_the_width(_shift_right)


def _shift_right_signed(x: Tensor, count: Tensor) -> Tensor:
    """Filled with the sign."""
    width = _width(x)
    return torch.bitwise_right_shift(x, torch.where((count < 0) | (count >= width), width - 1, count))


def high_product(x: Tensor, y: Tensor) -> Tensor:
    """The upper half of the unsigned product: of 64 bits by halves of the operands, so that nothing overflows; one of
    fewer fits into the 64 bits of int64, whatever sign they give it."""
    bits = _width(x)
    if bits <= 32:  # by numpy, in half of torch's time
        a, b = (one.numpy().view(f"u{bits // 8}").astype(numpy.uint64) for one in (x, y))
        return torch.from_numpy((a * b >> numpy.uint64(bits)).astype(f"u{bits // 8}").view(f"i{bits // 8}"))
    low = (1 << 32) - 1
    x0, x1, y0, y1 = x & low, (x >> 32) & low, y & low, (y >> 32) & low
    middle = x1 * y0 + ((x0 * y0 >> 32) & low)
    return x1 * y1 + ((middle >> 32) & low) + (((middle & low) + x0 * y1 >> 32) & low)


def _extreme(pick: Callable[[int, int], int], tensors: Callable[[Tensor, Tensor], Tensor]) -> IntegerFunction:
    """The smaller or larger one, signed; an Affine where its bounds decide."""
    by_element = _by_element(tensors, pick)

    def apply(a: Integer, b: Integer, bits: int, shape: Shape) -> Integer:
        for x, n in ((a, b), (b, a)):
            if isinstance(x, Affine) and isinstance(n, int) and (x.high <= n or x.low >= n):
                return x if pick(x.low, n) == x.low and pick(x.high, n) == x.high else n
        return by_element(a, b, bits, shape)

    return apply


_smaller, _larger = _extreme(min, torch.minimum), _extreme(max, torch.maximum)

OPERATIONS: dict[str, IntegerFunction] = {
    "arith.addi": addi, "arith.subi": subi, "arith.muli": muli, "arith.divsi": divsi, "arith.remsi": remsi,
    "arith.floordivsi": _divided(torch.floor_divide, torch.neg, operator.floordiv),
    "arith.ceildivsi": _divided(lambda x, y: -torch.floor_divide(-x, y), torch.neg, lambda x, y: -(-x // y)),
    "arith.divui": _unsigned_or(divsi, _divide_unsigned),
    "arith.remui": _unsigned_or(remsi, lambda x, y: x - _divide_unsigned(x, y) * y),
    "arith.shli": shli, "arith.shrui": _unsigned_or(_by_element(_logical_shift, operator.rshift), _logical_shift),
    "arith.shrsi": _by_element(_shift_right_signed), "arith.andi": _by_element(torch.bitwise_and, operator.and_),
    "arith.ori": _by_element(torch.bitwise_or, operator.or_),
    "arith.xori": _by_element(torch.bitwise_xor, operator.xor), "arith.minsi": _smaller, "arith.maxsi": _larger,
    "arith.minui": _unsigned_or(_smaller, lambda x, y: torch.where(_less_unsigned(x, y), x, y)),
    "arith.maxui": _unsigned_or(_larger, lambda x, y: torch.where(_less_unsigned(x, y), y, x)),
    "tt.mulhiui": _by_element(high_product),
}  # fmt: skip
"""Of two integers of one type, by name."""


# --- casts ------------------------------------------------------------------------------------------------------------


def extsi(a: Value, source: int, target: int, shape: Shape) -> Value:
    """`a` of `source` bits, widened to `target` bits by its sign; a boolean that is true becomes -1."""
    if source == 1:
        return subi(0, extui(a, 1, target, shape), target, shape)  # type: ignore[arg-type]
    return a.to(INTEGER[target]) if isinstance(a, Tensor) else a


def extui(a: Value, source: int, target: int, shape: Shape) -> Value:
    """`a` of `source` bits, widened to `target` bits with zeros."""
    if isinstance(a, int):
        return wrap(int(a) & ((1 << source) - 1), target)
    if isinstance(a, Affine) and a.low >= 0:
        return a
    value = dense(a, INTEGER[source], shape)
    return value.to(INTEGER[target]) if source == 1 else signed(unsigned(value), target)


def trunci(a: Value, target: int, shape: Shape) -> Value:
    """The low `target` bits of `a`."""
    if isinstance(a, int):
        return wrap(a, target) if target > 1 else bool(a & 1)
    if isinstance(a, Affine) and target > 1 and (fits(a.low, a.high, target) or fits(*span(a, shape), target)):
        return a
    value = dense(a, torch.int64, shape)
    return (value & 1).to(torch.bool) if target == 1 else value.to(INTEGER[target])


# --- comparisons: by their bounds where these suffice, lazy where they are inequalities -------------------------------

_COMPARISONS: dict[str, tuple[Callable[..., bool], Callable[..., Tensor]]] = {
    "eq": (operator.eq, torch.eq), "ne": (operator.ne, torch.ne), "slt": (operator.lt, torch.lt),
    "sle": (operator.le, torch.le), "sgt": (operator.gt, torch.gt), "sge": (operator.ge, torch.ge),
}  # fmt: skip
"""On numbers and on tensors."""


def cmpi(predicate: str, a: Integer, b: Integer, bits: int, shape: Shape) -> bool | Below | Tensor:
    """Compares as MLIR's predicate says; a bool where bounds decide it for every element."""
    if bits == 1:
        return _compare_bits(predicate, a, b, shape)
    if predicate[0] == "u":
        return _compare_unsigned(predicate, a, b, bits, shape)
    if isinstance(a, int) and isinstance(b, int):
        return _COMPARISONS[predicate][0](a, b)
    if isinstance(a, Affine) or isinstance(b, Affine):
        if isinstance(b, int):
            difference = moved(a, -b)  # type: ignore[arg-type]  # not both are numbers
        else:
            difference = add(affine(a, len(shape)), affine(b, len(shape)), shape, -1)
        if -(1 << 63) < difference.low and difference.high < 1 << 63:  # the smallest int64 has no negative
            return _compare_with_zero(predicate, difference, shape)
    return _COMPARISONS[predicate][1](tensor(a, bits, shape), tensor(b, bits, shape))


def _compare_bits(predicate: str, a: Value, b: Value, shape: Shape) -> Tensor:
    x, y = dense(a, torch.bool, shape).to(torch.int8), dense(b, torch.bool, shape).to(torch.int8)
    if predicate in ("slt", "sle", "sgt", "sge"):  # as signed one-bit numbers, true is -1
        x, y = -x, -y
    return _COMPARISONS[predicate if predicate in _COMPARISONS else "s" + predicate[1:]][1](x, y)


def _compare_unsigned(predicate: str, a: Integer, b: Integer, bits: int, shape: Shape) -> bool | Below | Tensor:
    ordered = "s" + predicate[1:]
    if _is_nonnegative(a) and _is_nonnegative(b):
        return cmpi(ordered, a, b, bits, shape)
    if isinstance(a, int) and isinstance(b, int):
        mask = (1 << bits) - 1
        return _COMPARISONS[ordered][0](a & mask, b & mask)
    top = torch.iinfo(INTEGER[bits]).min
    return _COMPARISONS[ordered][1](tensor(a, bits, shape) ^ top, tensor(b, bits, shape) ^ top)


def _compare_with_zero(predicate: str, difference: Affine, shape: Shape) -> bool | Below | Tensor:
    """By its exact ends where they decide for all elements; lazy where it is an inequality."""
    low, high = span(difference, shape)
    at_low, at_high = _COMPARISONS[predicate][0](low, 0), _COMPARISONS[predicate][0](high, 0)
    if predicate in ("eq", "ne"):
        if at_low == at_high and (low > 0 or high < 0 or low == high):
            return at_low
        return against_zero(_COMPARISONS[predicate][1], difference, shape)
    if at_low == at_high:
        return at_low
    gap = scale(difference, -1) if predicate[1] == "g" else difference
    return Below(moved(gap, -1) if predicate[2] == "e" else gap)
