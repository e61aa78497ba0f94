"""Operations along an axis: tt.dot, and the regions of scalar code of tt.reduce, tt.scan and tt.map_elementwise.

Any region can be run: a pair of tiles is laid out as if each element were a program, and the region is evaluated on
all of them. The regions that most kernels have (one operation on two arguments) go straight to torch.
"""

import math
from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from gradekit.engine.casts import round_to_tf32
from gradekit.engine.control import run_region
from gradekit.engine.frame import Frame, dtype_of
from gradekit.engine.integers import ON_ONE_BIT
from gradekit.engine.registry import Evaluator, compiles, evaluates
from gradekit.engine.ttir import Op, Region
from gradekit.engine.values import arange, dense

Tensors = tuple[Tensor, ...]
Combine = Callable[[Tensors, Tensors], Tensors]

_PAIR: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "arith.addf": torch.add, "arith.addi": torch.add, "arith.mulf": torch.mul, "arith.muli": torch.mul,
    "arith.maxnumf": torch.fmax, "arith.minnumf": torch.fmin,
    "arith.maximumf": torch.maximum, "arith.minimumf": torch.minimum,
    "arith.maxsi": torch.maximum, "arith.minsi": torch.minimum,
    "arith.andi": torch.bitwise_and, "arith.ori": torch.bitwise_or, "arith.xori": torch.bitwise_xor,
}  # fmt: skip
"""Combine regions of one operation, as the operation on two tensors of the element type, each step rounded to it."""


def only_operation(region: Region) -> str:
    """The name of the operation that the region applies to its two arguments, '' if it is anything else."""
    block = region.blocks[0]
    if len(region.blocks) != 1 or len(block.ops) != 2 or len(block.arguments) != 2:
        return ""
    operation, end = block.ops
    simple = sorted(operation.operands) == sorted(block.arguments) and end.operands == operation.results
    return operation.name if simple else ""


def combiner(frame: Frame, op: Op) -> Combine:
    """The combine region of a reduction or scan as a function of two tuples of equal tensors [program, ...]."""
    pair = _PAIR.get(_operation(op))
    if pair is not None:
        return lambda left, right: (pair(left[0], right[0]),)
    dtypes = [dtype_of(type) for type in op.result_types]
    return lambda left, right: elementwise(frame, op.regions[0], (*left, *right), dtypes)


def _operation(op: Op) -> str:
    """The name of the operation that a reduction or scan applies; on masks, of the one that it is there."""
    name = only_operation(op.regions[0])
    return ON_ONE_BIT.get(name, name) if op.operand_types[0].element == "i1" else name


def elementwise(frame: Frame, region: Region, arguments: Tensors, dtypes: Iterable[torch.dtype]) -> Tensors:
    """A region of scalar code run for each element of tensors [programs, ...] of one shape: results of these dtypes."""
    shape = arguments[0].shape
    programs = arange(shape[0]).view([-1] + [1] * (len(shape) - 1)).expand(shape).reshape(-1)
    inner = frame.inner(programs)
    inner.loops = None
    results = run_region(inner, region, [argument.reshape(-1) for argument in arguments])
    return tuple(
        dense(result, dtype, (inner.count,)).expand(inner.count).reshape(shape)
        for result, dtype in zip(results, dtypes, strict=True)
    )


def _operands(frame: Frame, op: Op) -> Tensors:
    """All operands at full tile size and with one program axis."""
    values = [frame.full(op, position) for position in range(len(op.operands))]
    count = max(value.shape[0] for value in values)
    return tuple(value if value.shape[0] == count else value.expand(count, *value.shape[1:]) for value in values)


# --- reduce -----------------------------------------------------------------------------------------------------------


@compiles("tt.reduce")
def _compile_reduce(op: Op) -> Evaluator:
    axis, operation, is_one = op.attributes["axis"] + 1, _operation(op), len(op.operands) == 1

    def step(frame: Frame) -> Tensors:
        values = _operands(frame, op)
        frame.context.meter.flops += values[0].numel()
        fast = _fast_reduction(operation, values[0], axis) if is_one else None
        return reduce_pairs(combiner(frame, op), values, axis, frame.count) if fast is None else (fast,)

    return step


def _fast_reduction(operation: str, value: Tensor, axis: int) -> Tensor | None:
    """The reductions that torch does as one pass with the same meaning; None where it has none."""
    if value.dtype is not torch.bool and (operation == "arith.addi" or operation == "arith.addf" and _is_wide(value)):
        return value.sum(axis).to(value.dtype)
    if operation not in _EXTREMES:
        return None
    result = _EXTREMES[operation](value, axis)
    skips_nan = operation in ("arith.maxnumf", "arith.minnumf")  # torch's do not
    return None if skips_nan and bool(result.isnan().any()) else result


def _is_wide(value: Tensor) -> bool:
    """Whether torch sums in the dtype itself, as a kernel that rounds each step to it, and not in float32."""
    return value.dtype.itemsize >= 4


_EXTREMES: dict[str, Callable[[Tensor, int], Tensor]] = {
    "arith.maxsi": torch.amax, "arith.maximumf": torch.amax, "arith.maxnumf": torch.amax,
    "arith.minsi": torch.amin, "arith.minimumf": torch.amin, "arith.minnumf": torch.amin,
}  # fmt: skip


def reduce_pairs(combine: Combine, values: Tensors, axis: int, count: int) -> Tensors:
    """Combines neighbours until one is left: a tree, as on the card, that keeps the order of operands."""
    values = tuple(value.movedim(axis, -1) for value in values)
    if values[0].shape[0] != count:  # a region may use values of each program
        values = tuple(value.expand(count, *value.shape[1:]) for value in values)
    while values[0].shape[-1] > 1:
        values = combine(tuple(value[..., 0::2] for value in values), tuple(value[..., 1::2] for value in values))
    return tuple(value[..., 0] for value in values)


# --- scan -------------------------------------------------------------------------------------------------------------


@evaluates("tt.scan")
def _evaluate_scan(frame: Frame, op: Op) -> Tensors:
    axis, reverse = op.attributes["axis"] + 1, bool(op.attributes.get("reverse", False))
    values = tuple(value.expand(frame.count, *value.shape[1:]).movedim(axis, -1) for value in _operands(frame, op))
    if reverse:
        values = tuple(value.flip(-1) for value in values)
    values = _fast_scan(_operation(op), values) or scan_steps(combiner(frame, op), values)
    if reverse:
        values = tuple(value.flip(-1) for value in values)
    return tuple(value.movedim(-1, axis) for value in values)


_SCANS: dict[str, Callable[..., Tensor]] = {
    "arith.addf": torch.cumsum, "arith.addi": torch.cumsum, "arith.mulf": torch.cumprod, "arith.muli": torch.cumprod,
}  # fmt: skip


def _fast_scan(operation: str, values: Tensors) -> Tensors | None:
    if len(values) != 1 or not _is_wide(values[0]) or operation not in _SCANS:
        return None
    return (_SCANS[operation](values[0], -1, dtype=values[0].dtype),)


def scan_steps(combine: Combine, values: Tensors) -> Tensors:
    """Every prefix in log2(n) steps: each element takes in the one that stands 1, 2, 4, ... before it."""
    size, step = values[0].shape[-1], 1
    while step < size:
        joined = combine(tuple(v[..., :-step] for v in values), tuple(v[..., step:] for v in values))
        values = tuple(torch.cat([v[..., :step], j], -1) for v, j in zip(values, joined, strict=True))
        step *= 2
    return values


@evaluates("tt.map_elementwise")
def _evaluate_map(frame: Frame, op: Op) -> Tensors:
    """The region takes `pack` neighbouring elements of each operand at once and returns as many of each result."""
    pack = int(op.attributes.get("pack", 1))
    values = tuple(v.expand(frame.count, *v.shape[1:]) for v in _operands(frame, op))
    packed = tuple(part for v in values for part in v.reshape(frame.count, -1, pack).unbind(-1))
    dtypes = [dtype_of(type) for type in op.result_types for _ in range(pack)]
    parts = elementwise(frame, op.regions[0], packed, dtypes)
    return tuple(
        torch.stack(parts[k * pack : (k + 1) * pack], -1).reshape(frame.shape(type))
        for k, type in enumerate(op.result_types)
    )


# --- products of matrices, in the precisions that tensor cores have ---------------------------------------------------


@evaluates("tt.dot")
def _evaluate_dot(frame: Frame, op: Op) -> Tensor:
    """a [M, K] @ b [K, N] + c [M, N], or with a batch axis before; products exact, sums in the accumulator's type."""
    a, b, c = _operands(frame, op)
    frame.context.meter.flops += 2 * a.shape[0] * math.prod(op.result_types[0].shape) * a.shape[-1]
    precision = str(op.attributes.get("inputPrecision", "ieee")).lower()
    return product(a, b, c, precision)


def product(a: Tensor, b: Tensor, c: Tensor, precision: str = "ieee") -> Tensor:
    """a @ b + c in c's dtype, over equal leading axes."""
    if c.dtype is torch.int32:  # at most 2**14 a product, exact in float64 for any K that fits in memory
        return c + torch.matmul(a.double(), b.double()).to(torch.int64).to(torch.int32)
    if c.dtype is torch.float64:
        return _multiply_add(a.double(), b.double(), c)
    if a.dtype is torch.float32 and precision == "bf16x3":
        return _in_bf16_parts(a, b, c)
    if a.dtype is torch.float32 and precision == "tf32":
        a, b = round_to_tf32(a), round_to_tf32(b)
    return _multiply_add(a.float(), b.float(), c.float()).to(c.dtype)


def _multiply_add(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    if a.dim() == 3:
        return torch.baddbmm(c, a, b)
    return c + torch.matmul(a, b)


def _in_bf16_parts(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """Each operand as a bfloat16 and the bfloat16 of what is left; the product of the two rests is dropped."""
    a_high, b_high = a.bfloat16().float(), b.bfloat16().float()
    a_low, b_low = (a - a_high).bfloat16().float(), (b - b_high).bfloat16().float()
    small = _multiply_add(a_high, b_low, _multiply_add(a_low, b_high, torch.zeros_like(c)))
    return _multiply_add(a_high, b_high, c) + small
