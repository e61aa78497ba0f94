"""What single expressions and statements of a kernel show: terms, factors, conditions, what is assigned or stored."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradekit.submission.parsed_source import called

EXP = ("tl.exp", "tl.exp2", "tl.math.exp", "tl.math.exp2")


def terms(node: ast.expr) -> list[ast.expr]:
    """The summands of a sum, in their order."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        return [*terms(node.left), *terms(node.right)]
    return [node]


def factors(node: ast.expr) -> list[ast.expr]:
    """The factors of a product, in their order."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return [*factors(node.left), *factors(node.right)]
    return [node]


def converted(node: ast.AST) -> ast.expr | None:
    """What an expression converts, x of `x.to(dtype)`; None where it is no conversion."""
    is_conversion = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "to"
    return node.func.value if is_conversion else None  # type: ignore[attr-defined]


def without_conversions(node: ast.expr) -> ast.expr:
    """The expression, or what it converts, once or several times."""
    inner = converted(node)
    return node if inner is None else without_conversions(inner)


def names_outside_calls(node: ast.AST) -> set[str]:
    """The names in an expression that no function is applied to, but for a conversion."""
    if isinstance(node, ast.Call):
        inner = converted(node)
        return names_outside_calls(inner) if inner is not None else set()
    found = {node.id} if isinstance(node, ast.Name) else set()
    return found.union(*map(names_outside_calls, ast.iter_child_nodes(node)))


def is_stride(name: str) -> bool:
    """Whether a parameter is named as strides are: stride_am, x_row_stride, sxm, sn."""
    lower = name.lower()
    return "stride" in lower or (len(lower) in (2, 3) and lower[0] == "s")


def simple(statement: ast.stmt) -> bool:
    """Whether another statement may stand behind it on its line."""
    return isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Pass))


def value_of(statement: ast.AST) -> ast.expr | None:
    """What a statement computes: the right side of an assignment, or the value that a store stores."""
    value = statement.value if isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr)) else None
    if isinstance(statement, ast.Expr):
        return value.args[1] if isinstance(value, ast.Call) and is_stored(statement) else None
    return value


def is_stored(statement: ast.AST) -> bool:
    """Whether a statement stores a value, or adds one atomically."""
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Call) and called(value) in ("tl.store", "tl.atomic_add") and len(value.args) > 1


def target_of(statement: ast.AST) -> str:
    """The one name that a statement assigns; "" where it is none or several."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
    return target.id if isinstance(target, ast.Name) and not isinstance(statement, ast.For) else ""


def calls(nodes: list[ast.AST], *names: str) -> Iterator[ast.Call]:
    """The calls of functions of these names among nodes."""
    return (node for node in nodes if isinstance(node, ast.Call) and called(node) in names)


def is_call(node: ast.AST | None, *names: str) -> bool:
    """Whether a node is a call of one of these."""
    return node is not None and called(node) in names


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
