"""Where Triton takes constants alone: an axis, a part of a shape, a step."""

from __future__ import annotations

import ast
from collections.abc import Collection

from torch import Tensor

from gradekit.interpreter.tile_values import TilePointer
from gradekit.repair.operators.changes import Change, ChangeKind, ChangeSite

_STATIC = {"arange", "zeros", "full", "program_id", "num_programs", "reshape", "view", "broadcast_to", "static_range"}


def is_integer(site: ChangeSite, change: Change) -> bool:
    """Whether a change is one of a whole number, or of a tile of them."""
    kind = site.kind(change.node)
    return kind is not None and kind.of == "integer"


def needs_constant(change: Change, site: ChangeSite, functions: Collection[str]) -> bool:
    """Whether what comes to where Triton takes constants alone is no other constant of the kernel, and no axis."""
    is_meant = (
        change.new in site.kernel.constexprs or change.kind is ChangeKind.AXIS or isinstance(change.node, ast.stmt)
    )
    return not is_meant and is_static(site, change.node, functions)


def _name_of(node: ast.AST) -> str:
    """The last part of the name of what a call calls."""
    function = node.func if isinstance(node, ast.Call) else None
    return (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )


def is_static(site: ChangeSite, node: ast.AST, functions: Collection[str]) -> bool:
    """Whether an expression must be a number that all programs have: an axis, a part of a shape, a step."""
    if isinstance(site.watched.values.get(node), (Tensor, TilePointer)):
        return False
    parents = site.kernel.parents
    while isinstance(parents.get(node), (ast.expr, ast.keyword)):
        before, node = node, parents[node]
        if isinstance(node, ast.keyword) and node.arg in ("axis", "shape", "dtype"):
            return True
        name = _name_of(node)
        is_step = name == "range" and isinstance(node, ast.Call) and before in node.args[2:]
        if is_step or name in _STATIC or name in functions and _may_be_constant(site, before):
            return True
    return False


def _may_be_constant(site: ChangeSite, node: ast.AST) -> bool:
    """Whether an argument is of constants alone, so that a function may need one: no size and no stride is."""
    return not site.kernel.names(node) & set(site.kernel.params)
