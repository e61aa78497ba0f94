"""Integer arithmetic of TTIR as terms: what each operation gives, if nothing wraps around.

A rule takes the walk (which is told what must hold for the result to be so), the operation and its operands, and gives
the result. An operand that is not known makes the result one that is not, so rules see Terms and Truths alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from gradekit.engine import Op
from gradekit.prove.symbolic_values import OTHER, SymbolicPointer, Value, at_lanes, lane, lanes, reshaped
from gradekit.prove.terms import (
    ONE,
    TRUE,
    ZERO,
    Term,
    Truth,
    at_most,
    choose,
    div,
    equal,
    greatest,
    least,
    less,
    mod,
    negated,
    term,
)


class Walking(Protocol):
    """What a rule asks of the walk over the kernel."""

    def owe(self, op: Op, value: Term, low: int | None, high: int | None) -> None:
        """The result is right only if `value` is from `low` to `high`."""

    def known(self, condition: Truth) -> bool:
        """Whether the condition holds wherever the operation runs."""


Rule = Callable[..., Value]
RULES: dict[str, Rule] = {}
"""By the operation's name; a rule takes (walk, op, *operands)."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Enters a rule into the table."""

    def enter(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return enter


def bits_of(op: Op) -> int:
    """The width of the result's elements."""
    element = op.result_types[0].element
    return 64 if element == "index" else int(element[1:])


def fit(walk: Walking, op: Op, value: Term) -> Term:
    """`value`, which must be one that the result's type can hold."""
    half = 1 << (bits_of(op) - 1)
    walk.owe(op, value, -half, half - 1)
    return value


@rule("arith.addi")
def _add(walk: Walking, op: Op, a: Value, b: Value) -> Value:
    return fit(walk, op, a + b) if isinstance(a, Term) and isinstance(b, Term) else _either_alone(a, b)


@rule("arith.subi")
def _subtract(walk: Walking, op: Op, a: Value, b: Value) -> Value:
    return fit(walk, op, a - b) if isinstance(a, Term) and isinstance(b, Term) else _either_alone(a, b)


def _either_alone(a: Value, b: Value) -> Value:
    """The sum, or the difference, of two conditions: in one bit 1 + 1 is 0."""
    return (a & negated(b)) | (negated(a) & b) if isinstance(a, Truth) and isinstance(b, Truth) else OTHER


@rule("arith.muli")
def _multiply(walk: Walking, op: Op, a: Value, b: Value) -> Value:
    if isinstance(a, Truth) and isinstance(b, Truth):
        return a & b
    return fit(walk, op, a * b) if isinstance(a, Term) and isinstance(b, Term) else OTHER


@rule("arith.divsi")
def _divide(walk: Walking, op: Op, a: Term, b: Term) -> Value:
    """Towards zero."""
    if b.number is not None and b.number < 0:
        return fit(walk, op, -_towards_zero(walk, a, -b))
    walk.owe(op, b, 1, None)
    return _towards_zero(walk, a, b)


def _towards_zero(walk: Walking, a: Term, b: Term) -> Term:
    positive = at_most(ZERO, a)
    return div(a, b) if walk.known(positive) else choose(positive, div(a, b), -div(-a, b))


@rule("arith.remsi")
def _remainder(walk: Walking, op: Op, a: Term, b: Term) -> Value:
    """With the sign of `a`."""
    walk.owe(op, b, 1, None)
    positive = at_most(ZERO, a)
    return mod(a, b) if walk.known(positive) else choose(positive, mod(a, b), -mod(-a, b))


def _of(function: Callable[[Term, Term], Value], unsigned: bool = False, divides: bool = False) -> Rule:
    """What a function gives of two numbers, none of which may be negative where they are `unsigned`."""

    def rule(walk: Walking, op: Op, a: Term, b: Term) -> Value:
        if unsigned:
            _not_negative(walk, op, *((a,) if divides else (a, b)))
        if divides:
            walk.owe(op, b, 1, None)
        return function(a, b)

    return rule


RULES |= {
    "arith.divui": _of(div, unsigned=True, divides=True),
    "arith.remui": _of(mod, unsigned=True, divides=True),
    "arith.floordivsi": _of(div, divides=True),
    "arith.ceildivsi": _of(lambda a, b: -div(-a, b), divides=True),
    "arith.minsi": _of(least),
    "arith.maxsi": _of(greatest),
    "arith.minui": _of(least, unsigned=True),
    "arith.maxui": _of(greatest, unsigned=True),
}


def _not_negative(walk: Walking, op: Op, *values: Term) -> None:
    for value in values:
        walk.owe(op, value, 0, None)


# --- bits -------------------------------------------------------------------------------------------------------------


@rule("arith.andi")
def _and(walk: Walking, op: Op, a: Value, b: Value) -> Value:
    if isinstance(a, Truth) and isinstance(b, Truth):
        return a & b
    for value, mask in ((a, b), (b, a)):
        number = mask.number if isinstance(mask, Term) else None
        if number is not None and number >= 0 and number & (number + 1) == 0 and isinstance(value, Term):
            return mod(value, term(number + 1))
    return OTHER


@rule("arith.ori")
def _or(walk: Walking, op: Op, a: Value, b: Value) -> Value:
    return a | b if isinstance(a, Truth) and isinstance(b, Truth) else OTHER


@rule("arith.xori")
def _xor(walk: Walking, op: Op, a: Value, b: Value) -> Value:
    return -1 - a if isinstance(a, Term) and isinstance(b, Term) and b.number == -1 else _either_alone(a, b)


@rule("arith.shli")
def _shift_left(walk: Walking, op: Op, a: Term, b: Term) -> Value:
    return fit(walk, op, a * (1 << b.number)) if _is_shift(b, bits_of(op)) else OTHER  # type: ignore[operator]


@rule("arith.shrsi")
def _shift_right(walk: Walking, op: Op, a: Term, b: Term) -> Value:
    return div(a, term(1 << b.number)) if _is_shift(b, bits_of(op)) else OTHER  # type: ignore[operator]


@rule("arith.shrui")
def _shift_right_unsigned(walk: Walking, op: Op, a: Term, b: Term) -> Value:
    if not _is_shift(b, bits_of(op)):
        return OTHER
    walk.owe(op, a, 0, None)
    return div(a, term(1 << b.number))  # type: ignore[operator]


def _is_shift(value: Value, bits: int) -> bool:
    return isinstance(value, Term) and value.number is not None and 0 <= value.number < bits


# --- other types ------------------------------------------------------------------------------------------------------


@rule("arith.extsi")
def _widen(walk: Walking, op: Op, a: Value) -> Value:
    return choose(a, term(-1), ZERO) if isinstance(a, Truth) else a


@rule("arith.extui")
def _widen_unsigned(walk: Walking, op: Op, a: Value) -> Value:
    if isinstance(a, Truth):
        return choose(a, ONE, ZERO)
    walk.owe(op, a, 0, None)  # type: ignore[arg-type]
    return a


@rule("arith.trunci")
def _narrow(walk: Walking, op: Op, a: Term) -> Value:
    if op.result_types[0].element == "i1":
        return equal(mod(a, term(2)), ONE)
    return fit(walk, op, a)


@rule("arith.index_cast")
def _index(walk: Walking, op: Op, a: Value) -> Value:
    return fit(walk, op, a) if isinstance(a, Term) else OTHER


# --- comparing and choosing -------------------------------------------------------------------------------------------

COMPARE: dict[str, Callable[[Term, Term], Truth]] = {
    "eq": equal,
    "ne": lambda a, b: negated(equal(a, b)),
    "lt": less,
    "le": at_most,
    "gt": lambda a, b: less(b, a),
    "ge": lambda a, b: at_most(b, a),
}
"""By the predicate without its sign."""


@rule("arith.cmpi")
def _compare(walk: Walking, op: Op, a: Value, b: Value) -> Value:
    predicate = str(op.attributes["predicate"])
    if isinstance(a, Truth) and isinstance(b, Truth):
        same = (a & b) | (negated(a) & negated(b))
        return {"eq": same, "ne": negated(same)}.get(predicate, OTHER)
    if not isinstance(a, Term) or not isinstance(b, Term):
        return OTHER
    if predicate[0] == "u":
        _not_negative(walk, op, a, b)
    return COMPARE[predicate if predicate in ("eq", "ne") else predicate[1:]](a, b)


@rule("arith.select")
def _select(walk: Walking, op: Op, condition: Truth, a: Value, b: Value) -> Value:
    return selected(condition, a, b)


def selected(condition: Truth, a: Value, b: Value) -> Value:
    """`a` where the condition holds, else `b`; OTHER where they are not of one kind."""
    if a is b or condition == TRUE:
        return a
    if isinstance(a, Term) and isinstance(b, Term):
        return choose(condition, a, b)
    if isinstance(a, Truth) and isinstance(b, Truth):
        return (condition & a) | (negated(condition) & b)
    if (
        isinstance(a, SymbolicPointer)
        and isinstance(b, SymbolicPointer)
        and (a.base, a.itemsize) == (b.base, b.itemsize)
    ):
        return SymbolicPointer(a.base, choose(condition, a.offset, b.offset), a.itemsize)
    return OTHER


def known_operands(values: Sequence[Value]) -> bool:
    """Whether a rule can be applied to them."""
    return all(isinstance(value, (Term, Truth, SymbolicPointer)) for value in values)


# --- tiles: which element of which operand each lane of the result has ------------------------------------------------


@rule("tt.make_range")
def _range(walk: Walking, op: Op) -> Value:
    start = op.attributes["start"]
    return lane(0, op.attributes["end"] - start) + start


@rule("tt.splat", "tt.unsplat", "ttg.convert_layout")
def _same(walk: Walking, op: Op, a: Value) -> Value:
    return (
        at_lanes(a, op.operand_types[0].shape, [ZERO] * len(op.operand_types[0].shape))
        if op.name == "tt.unsplat"
        else a
    )


@rule("tt.expand_dims")
def _expand_dims(walk: Walking, op: Op, a: Value) -> Value:
    axis = op.attributes["axis"]
    places = lanes(op.result_types[0].shape)
    return at_lanes(a, op.operand_types[0].shape, places[:axis] + places[axis + 1 :])


@rule("tt.broadcast")
def _broadcast(walk: Walking, op: Op, a: Value) -> Value:
    old, new = op.operand_types[0].shape, op.result_types[0].shape
    places = [ZERO if size == 1 else place for size, place in zip(old, lanes(new), strict=True)]
    return at_lanes(a, old, places)


@rule("tt.trans")
def _transpose(walk: Walking, op: Op, a: Value) -> Value:
    order, new = op.attributes["order"], lanes(op.result_types[0].shape)
    places = [new[order.index(axis)] for axis in range(len(order))]
    return at_lanes(a, op.operand_types[0].shape, places)


@rule("tt.reshape")
def _reshape(walk: Walking, op: Op, a: Value) -> Value:
    if op.attributes.get("allow_reorder"):
        return OTHER
    return reshaped(a, op.operand_types[0].shape, op.result_types[0].shape)


@rule("tt.join")
def _join(walk: Walking, op: Op, a: Value, b: Value) -> Value:
    shape = op.result_types[0].shape
    return selected(equal(lane(len(shape) - 1, 2), ZERO), a, b)


@rule("tt.addptr")
def _move(walk: Walking, op: Op, pointer: Value, by: Value) -> Value:
    if not isinstance(pointer, SymbolicPointer) or not isinstance(by, Term):
        return OTHER
    return SymbolicPointer(pointer.base, pointer.offset + by, pointer.itemsize)
