"""What stands at the wrong place: a term or factor that belongs to another line of the formula, a statement that
belongs nowhere."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from gradekit.repair.operators.changes import WRITTEN, Change, ChangeKind, ChangeSite
from gradekit.repair.operators.words import words
from gradekit.source.kernel import target_of

_OF_TERMS = 2
"""The turn of those."""


def moves(site: ChangeSite) -> Iterator[Change]:
    """All of a function."""
    yield from _of_terms(site)
    yield from _left_out(site)


def _is_moved(statement: ast.stmt) -> bool:
    return isinstance(statement, (ast.Assign, ast.AugAssign)) and target_of(statement) != ""


def _left_out(site: ChangeSite) -> Iterator[Change]:
    """A statement that gives a name another value than it has, as it is needed once and stands there twice."""
    for statement in site.kernel.statements:
        name = target_of(statement)
        if _is_moved(statement) and name in site.watched.names.get(statement, ()):
            gone = "pass" + " \\\n" * site.source.of(statement).count("\n")  # on as many lines
            yield site.change(ChangeKind.DROPPED, statement, gone, words("statement", name=name), 0, ast.Pass())


# --- terms and factors --------------------------------------------------------------------------------------------


def _of_terms(site: ChangeSite) -> Iterator[Change]:
    """A term or factor of one line, taken from there and put to all that another computes."""
    lines: list[Any] = list(filter(_is_moved, site.kernel.statements))
    wholes = [one for one in lines if (kind := site.kind(one.value)) is not None and kind.of == "float"]
    for node, moved in _pieces(site):
        kind, mine = site.kind(moved), site.kernel.statement(node)
        for line in (one for one in wholes if one is not mine):
            known = site.watched.names.get(line, {})
            fits = kind is not None and kind.shape in ((), site.kind(line.value).shape)  # type: ignore[union-attr]
            if not fits or not all(name in known for name in site.kernel.names(moved) & site.kernel.values.keys()):
                continue
            op, piece = WRITTEN[type(node.op)], " ".join(site.source.operand(moved).split())
            rest = node.left if moved is node.right else node.right
            says = words("moved-part", op=op, it=piece, line=line.lineno)
            new = f"({site.source.operand(line.value)} {op} {piece})"
            built = ast.BinOp(line.value, node.op, moved)
            put = site.change(ChangeKind.MOVED_PART, line.value, new, says, _OF_TERMS, built)
            gone = site.change(ChangeKind.MOVED_PART, node, site.source.operand(rest), says, _OF_TERMS, rest)
            yield replace(gone, also=(put,))


def _pieces(site: ChangeSite) -> Iterator[tuple[ast.BinOp, ast.expr]]:
    """The operations on values, each with a side that may be taken from it."""
    for node in site.kernel.nodes:
        kind = site.kind(node) if isinstance(node, ast.BinOp) else None
        if isinstance(node, ast.BinOp) and kind is not None and kind.of == "float" and type(node.op) in _SIDES:
            yield node, node.right
            if isinstance(node.op, (ast.Add, ast.Mult)):
                yield node, node.left


_SIDES = (ast.Add, ast.Sub, ast.Mult, ast.Div)
