"""What a beginner may have meant in the place of a statement: what it adds to, how far it goes, for whom it ends."""

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from gradekit.arithmetic import SIGNS
from gradekit.interpreter.tile_values import fitted
from gradekit.repair.operators.changes import Change, ChangeKind, ChangeSite
from gradekit.repair.operators.words import hint_of, words
from gradekit.submission.parsed_source import called


def _assignment(site: ChangeSite, node: Any) -> Iterator[Change]:
    """`a = x` where what `a` was is lost; `a += x` where it was to be replaced."""
    target = node.target if isinstance(node, ast.AugAssign) else node.targets[0]
    if not isinstance(target, ast.Name):
        return
    name, value = target.id, site.source.of(node.value)
    if isinstance(node, ast.AugAssign):
        op = SIGNS.get(type(node.op), "")
        for other in (one for one in ("+=", "-=", "*=", "/=", "=") if one != f"{op}="):
            is_twice = (op, other) == ("+", "=") and name in site.kernel.names(node.value)
            says = words("update-twice" if is_twice else "update", name=name, old=op, new=other)
            yield site.change(ChangeKind.UPDATE, node, f"{name} {other} {value}", says)
        for factor in _factors(site, node) if op == "+" else ():
            told, one = words("unscaled", name=name, factor=factor), _fitted(site, node, factor)
            yield site.change(ChangeKind.UPDATE, node, f"{name} = {name} * {one} + {value}", told)
    elif not site.is_steady(node) and name in site.kernel.names(node.value):
        if isinstance(node.value, ast.BinOp) and isinstance(node.value.op, ast.Add):
            yield from _rescaled(site, node.value, name, _factors(site, node))
    elif not site.is_steady(node) and name in site.names(node):
        is_zero = called(node.value) == "tl.zeros" or getattr(node.value, "value", None) == 0
        added = words("set-back" if is_zero else "overwritten", name=name)
        yield site.change(ChangeKind.UPDATE, node, f"{name} += {value}", added)
        for factor in (one for one in _factors(site, node) if one != name):
            told = added[0], hint_of("overwritten-scaled", factor=factor)
            yield site.change(ChangeKind.UPDATE, node.value, f"({name} * {factor} + {value})", told)


def _rescaled(site: ChangeSite, node: ast.BinOp, name: str, factors: Iterable[str]) -> Iterator[Change]:
    """`a * f + x` for `a + x`."""
    left = node.left
    if isinstance(left, ast.Name) and left.id == name:
        for factor in (one for one in factors if one != name):
            new = f"({name} * {_fitted(site, left, factor)})"
            yield site.change(ChangeKind.UPDATE, left, new, words("unscaled", name=name, factor=factor))


def _fitted(site: ChangeSite, node: Any, factor: str) -> str:
    """A factor as it is written beside the value that a statement adds."""
    kind, mine = site.names(node).get(factor), site.kind(getattr(node, "value", node))
    return (fitted(factor, kind.shape, mine.shape) or factor) if kind is not None and mine is not None else factor


def _factors(site: ChangeSite, node: Any) -> dict[str, None]:
    """What is multiplied with something in the loop that a statement stands in, and what brings sums to a maximum."""
    loop = site.kernel.in_loop(node)
    inside = list(ast.walk(loop)) if loop is not None else []
    products = (one for one in inside if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Mult))
    values = {name for name, kind in site.names(node).items() if kind.of == "float"}
    parts = (side for one in products for side in (one.left, one.right))
    sides = (side.id for side in parts if isinstance(side, ast.Name) and side.id in values)
    return dict.fromkeys([*sides, *site.less_maxima(node)])


STATEMENTS: dict[type, tuple[Callable[[ChangeSite, Any], Iterator[Change]], ...]] = {
    ast.Assign: (_assignment,), ast.AugAssign: (_assignment,),
}  # fmt: skip
