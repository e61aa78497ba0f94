"""Comparisons in the text of a kernel."""

from __future__ import annotations

import ast


def smaller_sides(node: ast.Compare) -> ast.Tuple:
    """The sides of a comparison that it holds below something: the left one of <, the right one of >."""
    sides = [node.left, *node.comparators]
    found = []
    for left, operator, right in zip(sides, node.ops, sides[1:], strict=False):
        found += [left] if isinstance(operator, (ast.Lt, ast.LtE, ast.Eq)) else []
        found += [right] if isinstance(operator, (ast.Gt, ast.GtE, ast.Eq)) else []
    return ast.Tuple(found, ast.Load())


def is_condition(node: ast.expr) -> bool:
    """Whether an expression is a comparison, or several that are joined by & or |."""
    joined = isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr))
    return isinstance(node, ast.Compare) or (joined and any(isinstance(part, ast.Compare) for part in ast.walk(node)))
