"""Mutation operators of kernels and host code alike: comparisons, branches, statements, rounding."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from gradekit.mutation.operators import operator
from gradekit.submission.parsed_source import Edit, ParsedSource, called, shown

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
