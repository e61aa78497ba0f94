"""Mutation operators of kernels: masks, offsets, loops, reductions, precision."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradekit.mutation.operators import operator
from gradekit.source.kernel import KernelDraft
from gradekit.submission.parsed_source import Edit, ParsedSource, called, dotted

_ACCESSES = ("tl.load", "tl.store", "tl.atomic_add", "tl.atomic_max", "tl.atomic_min", "tl.atomic_cas")


@operator("mask dropped", "a size that leaves a tile partly outside of its tensor")
def mask_dropped(source: ParsedSource) -> Iterator[Edit]:
    """Loads and stores without their mask."""
    for node in source.in_kernels():
        if isinstance(node, ast.Call) and called(node) in _ACCESSES and _has(node, "mask"):
            edit = source.without_keywords(node, {"mask", "other"})
            assert edit is not None
            yield edit


@operator("half a mask", "a tile that is partly outside in the dimension that is no longer masked, and in no other")
def half_a_mask(source: ParsedSource) -> Iterator[Edit]:
    """One side of `a & b`, then the other."""
    for node in source.in_kernels():
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd):
            yield source.replaced(node, source.operand(node.left))
            yield source.replaced(node, source.operand(node.right))


@operator(
    "other changed", "a partial tile whose missing elements reach the result, among values beside which they count"
)
def other_changed(source: ParsedSource) -> Iterator[Edit]:
    """Another value for masked lanes, and none."""
    for node in source.in_kernels():
        if not isinstance(node, ast.Call):
            continue
        for keyword in node.keywords:
            if keyword.arg == "other":
                is_zero = isinstance(keyword.value, ast.Constant) and not keyword.value.value
                yield source.replaced(keyword.value, "1" if is_zero else "0.0")
                edit = source.without_keywords(node, {"other"})
                assert edit is not None
                yield edit


@operator("offset moved", "an element at the first or the last place of a tile")
def offset_moved(source: ParsedSource) -> Iterator[Edit]:
    """A tile that begins one element later; a whole number in a sum that is one larger."""
    for node in source.in_kernels():
        if called(node) == "tl.arange":
            yield source.replaced(node, f"({source.of(node)} + 1)")
        elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)) and _is_whole(node.right):
            yield source.replaced(node.right, str(int(source.of(node.right)) + 1))


@operator("program id", "more than one program along this axis")
def program_id(source: ParsedSource) -> Iterator[Edit]:
    """The id of another axis, the first program's, or a grid of one program."""
    for node in source.in_kernels():
        if called(node) == "tl.program_id" and isinstance(node, ast.Call) and node.args:
            axis = source.of(node.args[0])
            yield source.replaced(node, f"tl.program_id({'1' if axis == '0' else '0'})")
            yield source.replaced(node, f"(tl.program_id({axis}) * 0)")
        elif called(node) == "tl.num_programs":
            yield source.replaced(node, "1")


@operator("factor dropped", "a tensor whose strides, or sizes, make this factor another number than 1")
def factor_dropped(source: ParsedSource) -> Iterator[Edit]:
    """`a` for `a * b`, then `b`: strides, block sizes and factors of the arithmetic."""
    for node in source.in_kernels():
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            yield source.replaced(node, source.operand(node.left))
            yield source.replaced(node, source.operand(node.right))


@operator("argument swapped", "two arguments of different values: strides, sizes or tensors that are not alike")
def argument_swapped(source: ParsedSource) -> Iterator[Edit]:
    """Another argument of the kernel where one is read: the next one of its kind, a pointer, a stride or a size."""
    for kernel in source.kernels:
        names = [argument.arg for argument in kernel.args.args if argument.annotation is None]
        for node in ast.walk(kernel):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names:
                alike = [name for name in names if _kind(name) == _kind(node.id)]
                other = alike[(alike.index(node.id) + 1) % len(alike)]
                if other != node.id:
                    yield source.replaced(node, other)


def _kind(name: str) -> str:
    return next((kind for kind in ("ptr", "stride") if kind in name), "size")


@operator("index swapped", "a tile with different rows and columns")
def index_swapped(source: ParsedSource) -> Iterator[Edit]:
    """Another index where one is read: the next one that has a value there."""
    for kernel in (KernelDraft(source, node) for node in source.kernels):
        places = {name: min(value.lineno for value in kernel.values[name]) for name in kernel.indices}
        for node in kernel.nodes:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in places:
                known = [name for name, line in places.items() if line < node.lineno]
                if node.id in known and len(known) > 1:
                    yield source.replaced(node, known[(known.index(node.id) + 1) % len(known)])


@operator(
    "cast dropped",
    "values that the narrower dtype cannot hold: offsets beyond 2**31, or sums that a narrow float rounds",
)
def cast_dropped(source: ParsedSource) -> Iterator[Edit]:
    """`x` for `x.to(dtype)`."""
    for node in source.in_kernels():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "to":
            yield source.replaced(node, source.operand(node.func.value))


_NARROWER = {"tl.float32": "tl.float16", "tl.int64": "tl.int32", "torch.float32": "torch.float16"}


@operator(
    "dtype narrowed", "values that the narrower dtype cannot hold, or sums of enough terms for its rounding to show"
)
def dtype_narrowed(source: ParsedSource) -> Iterator[Edit]:
    """Half the bits for a cast, an accumulator or a buffer."""
    for node in source.everywhere():
        if isinstance(node, ast.Attribute) and dotted(node) in _NARROWER:
            yield source.replaced(node, _NARROWER[dotted(node)])


_OTHER_FUNCTION = {
    "tl.sum": "tl.max", "tl.max": "tl.min", "tl.min": "tl.max", "tl.maximum": "tl.minimum", "tl.minimum": "tl.maximum",
    "tl.exp": "tl.exp2", "tl.exp2": "tl.exp", "tl.zeros_like": "tl.empty_like",
}  # fmt: skip


@operator("other function", "values of which the two functions say something else: several, distinct, of both signs")
def other_function(source: ParsedSource) -> Iterator[Edit]:
    """A maximum for a sum, a minimum for a maximum, another base."""
    for node in source.in_kernels():
        if isinstance(node, ast.Call) and called(node) in _OTHER_FUNCTION:
            yield source.replaced(node.func, _OTHER_FUNCTION[called(node)])


@operator("axis changed", "a tile with different rows and columns")
def axis_changed(source: ParsedSource) -> Iterator[Edit]:
    """A reduction along the other axis."""
    for node in source.in_kernels():
        if isinstance(node, ast.Call):
            for keyword in node.keywords:
                if keyword.arg == "axis" and source.of(keyword.value) in ("0", "1"):
                    yield source.replaced(keyword.value, str(1 - int(source.of(keyword.value))))


_OPERATIONS = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Div: ("/", "*"), ast.FloorDiv: ("//", "%"), ast.Mod: ("%", "//"),
}  # fmt: skip


@operator("operation changed", "a second operand that is not 0, or not 1 where it divides")
def operation_changed(source: ParsedSource) -> Iterator[Edit]:
    """`-` for `+`, `+` for `-`, `*` for `/`, `%` for `//`, `//` for `%`; a minus sign that is gone."""
    for node in source.in_kernels():
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
            yield source.between_replaced(node.left, node.right, *_OPERATIONS[type(node.op)])
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            yield source.replaced(node, source.operand(node.operand))


@operator("sum overwritten", "a loop that runs at least twice and adds something each time")
def sum_overwritten(source: ParsedSource) -> Iterator[Edit]:
    """`x = y` for `x += y`."""
    for node in source.in_kernels():
        if isinstance(node, ast.AugAssign):
            start, end = source.span(node.target)[1], source.span(node.value)[0]
            yield Edit(start, end, " = ", f"{source.between(start, end).strip()} becomes =")


@operator("loop runs once", "a size for which the loop runs at least twice")
def loop_runs_once(source: ParsedSource) -> Iterator[Edit]:
    """A loop that ends after its first round."""
    for node in source.in_kernels():
        if isinstance(node, ast.For) and isinstance(node.iter, ast.Call) and called(node.iter).endswith("range"):
            arguments = node.iter.args
            if len(arguments) == 1:
                yield source.replaced(arguments[0], "1")
            elif len(arguments) > 1:
                step = source.operand(arguments[2]) if len(arguments) == 3 else "1"
                yield source.replaced(arguments[1], f"{source.operand(arguments[0])} + {step}")


@operator("one side of where", "elements of which the condition holds, and others of which it does not")
def one_side_of_where(source: ParsedSource) -> Iterator[Edit]:
    """`a`, then `b`, for `tl.where(c, a, b)`."""
    for node in source.in_kernels():
        if isinstance(node, ast.Call) and called(node) == "tl.where" and len(node.args) == 3:
            yield source.replaced(node, source.operand(node.args[1]))
            yield source.replaced(node, source.operand(node.args[2]))


@operator("constant changed", "values for which a hundredth more of this constant counts")
def constant_changed(source: ParsedSource) -> Iterator[Edit]:
    """A number that is a hundredth larger."""
    for node in source.in_kernels():
        if isinstance(node, ast.Constant) and type(node.value) is float and node.value != 0:
            yield source.replaced(node, f"{node.value * 1.01:.6g}")


def _is_whole(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int


def _has(call: ast.Call, name: str) -> bool:
    return any(keyword.arg == name for keyword in call.keywords)
