"""Mutation operators of host code: grids, strides and shapes, buffers, and torch in place of a kernel."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradekit.mutation.operators import operator
from gradekit.submission.parsed_source import Edit, ParsedSource, called

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
