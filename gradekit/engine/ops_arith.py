"""arith.* and math.*: numbers, elementwise. Integers go through `integers`; floats are torch's own in their dtype."""

import functools
import math
from collections.abc import Callable
from types import BuiltinFunctionType
from typing import Any

import torch
from torch import Tensor

from gradekit.engine import integers
from gradekit.engine.branch_coverage import watches
from gradekit.engine.casts import float_to_float, float_to_signed, float_to_unsigned, unsigned_to_float
from gradekit.engine.frame import Frame, dtype_of
from gradekit.engine.masks import cut_to, padded
from gradekit.engine.memory import everywhere
from gradekit.engine.registry import OPS, Compiler, Evaluator, compiles, evaluates
from gradekit.engine.ttir import Op, Type
from gradekit.engine.values import (
    BITS,
    Affine,
    Below,
    Conjunction,
    Pointer,
    Unmade,
    Value,
    absolute,
    constant,
    dense,
    mask_factors,
    owned,
)

# --- constants --------------------------------------------------------------------------------------------------------


@evaluates("arith.constant")
def _evaluate_constant(frame: Frame, op: Op) -> Value:
    type, value = op.result_types[0], op.attributes["value"]
    if isinstance(value, list | tuple):
        return torch.tensor(value, dtype=dtype_of(type)).view(1, *type.shape)
    if type.element in BITS:
        return bool(value) if type.element == "i1" else int(value)
    return constant(float(value), dtype_of(type), 1 + len(type.shape))


@evaluates("ub.poison")
def _evaluate_poison(frame: Frame, op: Op) -> Value:
    type = op.result_types[0]
    return 0 if type.element in BITS else constant(float("nan"), dtype_of(type), 1 + len(type.shape))


# --- integers ---------------------------------------------------------------------------------------------------------


def _integer(function: Callable[..., Any]) -> Compiler:
    """Steps of an operation on two integers of one type: `function` is one of `integers`."""

    def compile(op: Op) -> Evaluator:
        left, right = op.operands
        bits, tile = BITS[op.operand_types[0].element], op.operand_types[0].shape

        def step(frame: Frame) -> Any:
            values = frame.values
            return function(values[left], values[right], bits, (frame.count, *tile))

        return step

    return compile


def _number(name: str) -> Compiler:
    """Steps of an operation that `integers` has; on i1, of the one on masks that it is."""

    def compile(op: Op) -> Evaluator:
        on_masks = integers.ON_ONE_BIT.get(name) if op.result_types[0].element == "i1" else None
        return _integer(_ON_MASKS[on_masks] if on_masks else integers.OPERATIONS[name])(op)

    return compile


for _name in integers.OPERATIONS:
    OPS[_name] = _number(_name)


@compiles("arith.cmpi")
def _compile_cmpi(op: Op) -> Evaluator:
    return _integer(functools.partial(integers.cmpi, op.attributes["predicate"]))(op)


def _masks(
    function: Callable[[Tensor, Tensor], Tensor], a: Value, b: Value, bits: int, shape: tuple[int, ...]
) -> Value:
    if isinstance(a, bool) and isinstance(b, bool):
        return bool(function(torch.tensor(a), torch.tensor(b)))
    return function(dense(a, torch.bool, shape), dense(b, torch.bool, shape))


def _conjunction(a: Value, b: Value, bits: int, shape: tuple[int, ...]) -> Value:
    """a and b, kept as factors where their product would be larger than both, or where one is not a tensor yet."""
    for x, y in ((a, b), (b, a)):
        if isinstance(x, bool):
            return y if x else False
    both = Conjunction((*mask_factors(a), *mask_factors(b)))
    factors = [factor for factor in both.factors if isinstance(factor, Tensor)]
    if len(factors) < len(both.factors):
        return both
    sizes = tuple(map(max, zip(*(factor.shape for factor in factors), strict=True)))
    return dense(both, torch.bool, shape) if any(tuple(factor.shape) == sizes for factor in factors) else both


_ON_MASKS: dict[str, Callable[..., Value]] = {
    "arith.andi": _conjunction,
    "arith.ori": functools.partial(_masks, torch.logical_or),
    "arith.xori": functools.partial(_masks, torch.logical_xor),
}


@compiles("arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast", "arith.index_castui")
def _compile_resize(op: Op) -> Evaluator:
    (name,), tile = op.operands, op.result_types[0].shape
    source, target = BITS[op.operand_types[0].element], BITS[op.result_types[0].element]
    if target == source:
        return lambda frame: frame.values[name]
    if target < source:
        return lambda frame: integers.trunci(frame.values[name], target, (frame.count, *tile))
    resize = integers.extui if op.name in ("arith.extui", "arith.index_castui") else integers.extsi
    return lambda frame: resize(frame.values[name], source, target, (frame.count, *tile))


# --- select -----------------------------------------------------------------------------------------------------------


@compiles("arith.select")
def _compile_select(op: Op) -> Evaluator:
    (chooser, first, second), type = op.operands, op.result_types[0]
    chooser_tile, tile = op.operand_types[0].shape, type.shape
    by_program = (1,) * (len(tile) - len(chooser_tile))  # one condition for each program selects whole tiles
    dtype = None if type.element == "ptr" else dtype_of(type)

    def step(frame: Frame) -> Value:
        shape, spent = (frame.count, *tile), dtype and first in op.dead and frame.context.observe is None
        free = owned(frame.values, first, dtype, shape) if spent else None  # type: ignore[arg-type]
        chosen, yes, no = frame.values[chooser], frame.values[first], frame.values[second]
        if isinstance(chosen, int):
            return yes if chosen else no
        if yes.__class__ is no.__class__ is Tensor and not by_program and _is_one_length(chosen):
            box = frame.context.memory.box(chosen, shape)
            if not box.masks and not box.empty:
                return padded(cut_to(yes, box.cut), box.cut, no, shape, free)
        condition = dense(chosen, torch.bool, (frame.count, *chooser_tile))
        if by_program:
            condition = condition.view(-1, *by_program)
        if dtype is None:
            return _select_pointer(condition, yes, no, shape)
        return torch.where(condition, dense(yes, dtype, shape), dense(no, dtype, shape))

    return step


def _is_one_length(mask: Value) -> bool:
    """Whether a mask is decided along one axis, for all programs alike."""
    return isinstance(mask, Below) and isinstance(mask.gap.base, int) and sum(map(bool, mask.gap.steps)) == 1


def _select_pointer(condition: Tensor, yes: Pointer, no: Pointer, shape: tuple[int, ...]) -> Pointer:
    if yes.storage is not no.storage or yes.itemsize != no.itemsize:
        yes, no = absolute(yes), absolute(no)
    offset = torch.where(condition, dense(yes.offset, torch.int64, shape), dense(no.offset, torch.int64, shape))
    return Pointer(yes.storage, offset, yes.itemsize)


# --- floats -----------------------------------------------------------------------------------------------------------

_BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "arith.addf": torch.add, "arith.subf": torch.sub, "arith.mulf": torch.mul, "arith.divf": torch.div,
    "arith.remf": torch.fmod, "arith.maximumf": torch.maximum, "arith.minimumf": torch.minimum,
    "arith.maxnumf": torch.fmax, "arith.minnumf": torch.fmin, "tt.precise_divf": torch.div,
    "math.powf": torch.pow,
}  # fmt: skip


def cube_root(x: Tensor) -> Tensor:
    """By float64, which leaves one rounding."""
    return x.abs().double().pow(1 / 3).copysign(x).to(x.dtype)


def round_half_away(x: Tensor) -> Tensor:
    """To the nearest whole number, halves away from zero."""
    return torch.trunc(x + torch.copysign(torch.full_like(x, 0.5), x))


def multiply_add(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """a * b + c in one rounding: the product of two float32 is exact in float64, and so nearly is the sum."""
    return (a.double() * b.double() + c.double()).to(a.dtype)


def exp(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """torch.exp. Its library takes much longer for -inf than for other numbers, and that is what all masked lanes of a
    softmax are: where those that end the first row are so in all rows, they are filled in."""
    if x.dim() < 2 or x.numel() < 2048:
        return torch.exp(x, out=out)
    others = (x.flatten(0, -2)[0] != -math.inf).nonzero()
    lanes = int(others[-1]) + 1 if len(others) else 0
    if lanes == x.shape[-1] or not everywhere(x[..., lanes:] == -math.inf):
        return torch.exp(x, out=out)
    result = torch.empty_like(x, memory_format=torch.contiguous_format) if out is None else out
    torch.exp(x[..., :lanes], out=result[..., :lanes])
    result[..., lanes:] = 0.0
    return result


LIKE_TORCH: dict[str, Callable[..., Tensor]] = {"exp": exp} | {
    name: getattr(torch, name)
    for name in (
        "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan", "asin", "acos",
        "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "floor", "ceil", "trunc",
        "copysign",
    )
}  # fmt: skip
"""What math.* and libdevice call as torch does."""

_UNARY: dict[str, Callable[..., Tensor]] = {f"math.{name}": function for name, function in LIKE_TORCH.items()} | {
    "arith.negf": torch.neg, "math.absf": torch.abs, "tt.precise_sqrt": torch.sqrt, "math.roundeven": torch.round,
    "math.cbrt": cube_root, "math.round": round_half_away,
}  # fmt: skip


def _elementwise(function: Callable[..., Tensor], flops: int = 1) -> Compiler:
    """Steps of an operation on floats, of so many `flops` an element, that may take the memory of an operand."""

    def compile(op: Op) -> Evaluator:
        operands = [
            (name, dtype_of(type), type.shape) for name, type in zip(op.operands, op.operand_types, strict=True)
        ]
        takes_memory = (isinstance(function, BuiltinFunctionType) or function is exp) and not watches(op)
        spent = [operand for operand in operands if takes_memory and operand[0] in op.dead]

        def step(frame: Frame) -> Tensor | Unmade:
            values, count, place = frame.values, frame.count, None
            reuses = takes_memory and frame.context.observe is None
            if reuses and not op.only_stored:
                free = (owned(values, name, dtype, (count, *tile)) for name, dtype, tile in spent)
                place = next(filter(lambda one: one is not None, free), None)
            given = [dense(values[name], dtype, (count, *tile)) for name, dtype, tile in operands]
            if reuses and op.only_stored:
                later = Unmade(function, tuple(given))
                frame.context.meter.flops += math.prod(later.shape)
                return later
            result = function(*given, out=place) if reuses else function(*given)
            frame.context.meter.flops += flops * result.numel()
            return result

        return step

    return compile


for _name, _function in (_BINARY | _UNARY).items():
    OPS[_name] = _elementwise(_function)


@evaluates("math.absi")
def _evaluate_absi(frame: Frame, op: Op) -> Value:
    return torch.abs(frame.tensor(op, 0))


OPS["math.fma"] = _elementwise(multiply_add, flops=2)


@compiles("tt.clampf")
def _compile_clampf(op: Op) -> Evaluator:
    keeps_nan = "all" in str(op.attributes.get("propagateNan", "none"))
    smaller, larger = (torch.minimum, torch.maximum) if keeps_nan else (torch.fmin, torch.fmax)
    return _elementwise(lambda value, low, high: smaller(larger(value, low), high), flops=0)(op)


# --- comparison -------------------------------------------------------------------------------------------------------

_ORDERED: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "eq": torch.eq, "gt": torch.gt, "ge": torch.ge, "lt": torch.lt, "le": torch.le,
}  # fmt: skip


@evaluates("arith.cmpf")
def _evaluate_cmpf(frame: Frame, op: Op) -> Tensor:
    """MLIR's predicates: o.. is false and u.. is true where either side is NaN."""
    predicate, a, b = op.attributes["predicate"], frame.tensor(op, 0), frame.tensor(op, 1)
    if predicate in ("true", "false"):
        return torch.full_like(a + b, predicate == "true", dtype=torch.bool)
    unordered = a.isnan() | b.isnan() if predicate in ("ord", "uno", "one") or predicate[0] == "u" else None
    if predicate in ("ord", "uno"):
        return ~unordered if predicate == "ord" else unordered  # type: ignore[operator,return-value]
    if predicate[1:] == "ne":
        return torch.ne(a, b) & ~unordered if predicate[0] == "o" else torch.ne(a, b)  # type: ignore[operator]
    holds = _ORDERED[predicate[1:]](a, b)
    return holds | unordered if predicate[0] == "u" else holds  # type: ignore[operator]


# --- conversions ------------------------------------------------------------------------------------------------------


@compiles("arith.extf", "arith.truncf", "tt.fp_to_fp")
def _compile_float_cast(op: Op) -> Evaluator:
    target = dtype_of(op.result_types[0])
    toward_zero = "rtz" in str(op.attributes.get("rounding", "")) or op.attributes.get("rounding") == 0
    return _elementwise(lambda value: float_to_float(value, target, toward_zero), flops=0)(op)


@evaluates("arith.sitofp", "arith.uitofp")
def _evaluate_int_to_float(frame: Frame, op: Op) -> Tensor:
    target, value = dtype_of(op.result_types[0]), frame.operand(op, 0)
    bits = BITS[op.operand_types[0].element]
    if bits == 1:
        ones = dense(value, torch.bool, frame.shape(op.result_types[0])).to(target)
        return ones if op.name == "arith.uitofp" else -ones
    number = integers.tensor(value, bits, frame.shape(op.result_types[0]))
    return unsigned_to_float(number, target) if op.name == "arith.uitofp" else number.to(target)


@evaluates("arith.fptosi", "arith.fptoui")
def _evaluate_float_to_int(frame: Frame, op: Op) -> Tensor:
    convert = float_to_signed if op.name == "arith.fptosi" else float_to_unsigned
    return convert(frame.tensor(op, 0), BITS[op.result_types[0].element])


@evaluates("arith.bitcast", "tt.bitcast")
def _evaluate_bitcast(frame: Frame, op: Op) -> Value:
    source, target = op.operand_types[0], op.result_types[0]
    value = frame.operand(op, 0)
    if target.element == "ptr":
        return _repoint(value, target)
    same_kind = (source.element in BITS) == (target.element in BITS)
    if isinstance(value, int | Affine | Below | Conjunction) and same_kind:
        return value
    return frame.tensor(op, 0).contiguous().view(dtype_of(target))


def _repoint(pointer: Pointer, target: Type) -> Pointer:
    """The same address counted in elements of another size."""
    assert target.pointee is not None
    size = dtype_of(target.pointee).itemsize
    if target.pointee.element == "i1":
        size = 1
    if size == pointer.itemsize or pointer.storage is None:
        return Pointer(pointer.storage, pointer.offset, size)
    if pointer.itemsize % size == 0 and isinstance(pointer.offset, int):
        return Pointer(pointer.storage, pointer.offset * (pointer.itemsize // size), size)
    return Pointer(None, absolute(pointer).offset, size)
