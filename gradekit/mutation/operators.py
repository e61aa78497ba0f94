"""The table of mutation operators: each finds the places where one kind of small mistake can be made in a source.

An operator is a function from a ParsedSource to Edits, entered with `@operator(name, needs)`. `needs` says what an
input must have for the mistake to show: it is what an author reads below a mutant that survived.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gradekit.source.kernel import KernelDraft
from gradekit.submission.parsed_source import Edit, ParsedSource, called, dotted, shown

Find = Callable[[ParsedSource], Iterator[Edit]]


@dataclass(frozen=True)
class Operator:
    """A kind of edit: its `name`, what an input `needs` to show it, and how its places are found."""

    name: str
    needs: str
    find: Find


OPERATORS: dict[str, Operator] = {}
"""All operators by name, in the order in which they were entered."""


def operator(name: str, needs: str) -> Callable[[Find], Find]:
    """Enter a function into the table."""

    def entered(find: Find) -> Find:
        OPERATORS[name] = Operator(name, needs, find)
        return find

    return entered


# --- mutation operators of kernels and host code alike: comparisons, branches, statements, rounding -------------------


_COMPARISONS = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="),
}  # fmt: skip


@operator("comparison", "a size, an index or a value for which the two sides are equal")
def comparison(source: ParsedSource) -> Iterator[Edit]:
    """`<=` for `<` and so on: what differs is the boundary alone."""
    for node in source.everywhere():
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARISONS:
            yield source.between_replaced(node.left, node.comparators[0], *_COMPARISONS[type(node.ops[0])])


@operator("branch fixed", "a call for which this condition holds, and one for which it does not")
def branch_fixed(source: ParsedSource) -> Iterator[Edit]:
    """A condition that always holds, and one that never does."""
    for node in source.everywhere():
        if isinstance(node, (ast.If, ast.IfExp)):
            yield source.replaced(node.test, "True")
            yield source.replaced(node.test, "False")


@operator("rounded down", "a size that is no multiple of the tile's")
def rounded_down(source: ParsedSource) -> Iterator[Edit]:
    """`a // b` for `cdiv(a, b)`."""
    for node in source.everywhere():
        if isinstance(node, ast.Call) and called(node) in ("tl.cdiv", "triton.cdiv") and len(node.args) == 2:
            quotient = f"{source.operand(node.args[0])} // {source.operand(node.args[1])}"
            yield source.replaced(node, f"max(1, {quotient})" if called(node) == "triton.cdiv" else f"({quotient})")


@operator("minimum changed", "a size on either side of this limit")
def minimum_changed(source: ParsedSource) -> Iterator[Edit]:
    """`max` for `min`, and the other way round."""
    for node in source.everywhere():
        if isinstance(node, ast.Call) and called(node) in ("min", "max"):
            yield source.replaced(node.func, "max" if called(node) == "min" else "min")


_ORDERED = ("max", "min", "tl.maximum", "tl.minimum")  # of these, the order of arguments says nothing


@operator("arguments exchanged", "two arguments of different values")
def arguments_exchanged(source: ParsedSource) -> Iterator[Edit]:
    """Two neighbours in a call, a launch among them, each in the other's place."""
    for node in source.everywhere():
        if isinstance(node, ast.Call) and called(node) not in _ORDERED:
            for left, right in itertools.pairwise(node.args):
                if not isinstance(left, ast.Starred) and not isinstance(right, ast.Starred):
                    start, middle, next_, end = (*source.span(left), *source.span(right))
                    new = source.of(right) + source.between(middle, next_) + source.of(left)
                    yield Edit(start, end, new, f"{shown(source.of(left))} and {shown(source.of(right))} exchanged")


@operator("statement dropped", "a call whose result depends on this statement")
def statement_dropped(source: ParsedSource) -> Iterator[Edit]:
    """A store, a launch, an update that is gone; and what is assigned to a name that has a value before."""
    for function in (*source.kernels, *source.host):
        known = {argument.arg for argument in function.args.args}
        for node in _statements(function):
            names = _names(node)
            is_update = isinstance(node, ast.AugAssign) or (bool(names) and names <= known)
            if is_update or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
                yield Edit(*source.span(node), "pass", f"{source.of(node).partition('(')[0].strip()}... dropped")
            known |= names


def _statements(function: ast.FunctionDef) -> list[ast.stmt]:
    found = [node for node in ast.walk(function) if isinstance(node, ast.stmt) and node is not function]
    return sorted(found, key=lambda node: (node.lineno, node.col_offset))


def _names(node: ast.stmt) -> set[str]:
    """The names that an assignment gives a value; none where it also writes elsewhere."""
    if not isinstance(node, ast.Assign):
        return set()
    parts = [part for target in node.targets for part in (target.elts if isinstance(target, ast.Tuple) else [target])]
    return {part.id for part in parts if isinstance(part, ast.Name)} if all(map(_is_name, parts)) else set()


def _is_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Name)


# --- mutation operators of kernels: masks, offsets, loops, reductions, precision --------------------------------------


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


# --- mutation operators of host code: grids, strides and shapes, buffers, and torch in place of a kernel --------------


CAP = 64


@operator("grid capped", f"a size that takes more than {CAP} programs along this axis of the grid")
def grid_capped(source: ParsedSource) -> Iterator[Edit]:
    """At most 64 programs along an axis."""
    for size in _grid_sizes(source):
        yield source.replaced(size, f"min({source.of(size)}, {CAP})")


def _grid_sizes(source: ParsedSource) -> Iterator[ast.expr]:
    """The sizes of grids: what stands in the tuple of a launch, and in any other tuple whose sizes come from a cdiv."""
    nodes = list(source.on_host())
    grids = {
        id(node.func.slice) for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript)
    }
    for node in nodes:
        if isinstance(node, ast.Tuple):
            sizes = [size for size in node.elts if not isinstance(size, ast.Tuple)]
            yield from sizes if id(node) in grids else filter(_is_rounded_up, sizes)


def _is_rounded_up(size: ast.expr) -> bool:
    return any(called(node) == "triton.cdiv" for node in ast.walk(size))


def _target(node: ast.Assign) -> str:
    return node.targets[0].id if isinstance(node.targets[0], ast.Name) else ""


@operator("dimension swapped", "a tensor whose two dimensions differ in this size or stride")
def dimension_swapped(source: ParsedSource) -> Iterator[Edit]:
    """The stride or the size of the next dimension; shapes and strides in reverse."""
    for node in source.on_host():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "stride":
            if node.args:
                yield from _next(source, node.args[0])
            else:
                yield source.replaced(node, f"{source.of(node)}[::-1]")
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            yield from _next(source, node.slice)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple) and _is_shape(node.value):
            yield source.replaced(node.value, f"{source.of(node.value)}[::-1]")


def _next(source: ParsedSource, index: ast.expr) -> Iterator[Edit]:
    text = source.of(index)
    if text.lstrip("-").isdigit():
        yield source.replaced(index, str(int(text) - 1 if int(text) > 0 else int(text) + 1 if text != "-1" else -2))


def _is_shape(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "shape"


_ALLOCATIONS = ("torch.empty", "torch.zeros", "torch.empty_like", "torch.zeros_like", "torch.full")


@operator("buffer kept", "two calls of the same shape whose results are both looked at, or a call after another")
def buffer_kept(source: ParsedSource) -> Iterator[Edit]:
    """A buffer that is allocated once for each shape and dtype, and handed out again."""
    for node in source.on_host():
        if isinstance(node, ast.Call) and called(node) in _ALLOCATIONS:
            parts = [source.of(part) for part in (*node.args, *(keyword.value for keyword in node.keywords))]
            key = "str([getattr(part, 'shape', part) for part in (" + "".join(f"{part}, " for part in parts) + ")])"
            start, end = source.span(node)
            new = f"globals().setdefault('kept ' + {key}, {source.of(node)})"
            yield Edit(start, end, new, f"{source.of(node)} is kept")


@operator("not zeroed", "a sum that begins with what the memory holds, which is not 0")
def not_zeroed(source: ParsedSource) -> Iterator[Edit]:
    """`torch.empty` for `torch.zeros`."""
    for node in source.on_host():
        if isinstance(node, ast.Call) and called(node) in ("torch.zeros", "torch.zeros_like"):
            yield source.replaced(node.func, called(node).replace("zeros", "empty"))


@operator("copy dropped", "an input that is not contiguous")
def copy_dropped(source: ParsedSource) -> Iterator[Edit]:
    """`x` for `x.contiguous()`."""
    for node in source.on_host():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "contiguous":
            yield source.replaced(node, source.operand(node.func.value))


@operator("torch computes", "any call: torch must not compute on the host")
def torch_computes(source: ParsedSource) -> Iterator[Edit]:
    """A result that torch goes over once more after the kernel."""
    for function in source.host:
        buffers = {
            _target(node)
            for node in ast.walk(function)
            if isinstance(node, ast.Assign) and called(node.value) in _ALLOCATIONS
        }
        for node in ast.walk(function):
            if isinstance(node, ast.Return) and isinstance(node.value, ast.Name) and node.value.id in buffers:
                yield source.replaced(node.value, f"{node.value.id} * 1")
