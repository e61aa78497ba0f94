"""Mends of host code, one value in another's place: what a launch passes, counts or allocates, and what is returned.

Any value of the same kind may have been meant: those come first whose names are like the parameter's.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from gradekit.repair.mend import Family, Mend
from gradekit.source.draft import Draft

ALIKE = 0.25
"""How much better a name must fit a parameter for its mend to come early."""

EARLY, SOON, LATE = 6, 15, 36
"""Ranks: of a name that fits much better than what is passed, of one that fits better, of any other."""


# --- what host code has ---------------------------------------------------------------------------------------------


# --- sizes in formulas ------------------------------------------------------------------------------------------------


# --- order and results ------------------------------------------------------------------------------------------------


def taken_too_early(draft: Draft) -> Iterator[Mend]:
    """Strides or sizes that are taken from tensors, just before their names are given to others."""
    for function in draft.source.host:
        for first, second in _near(function):
            taken = re.search(r"\.(stride|shape|size|numel)\b", draft.source.of(first.value))
            renewed = _assigned(second) & _read(second) & _read(first)
            if taken and renewed and not _assigned(first) & (_read(second) | _assigned(second)):
                names = " and ".join(sorted(renewed))
                yield Mend(
                    Family.STRIDES, 3, first.lineno, draft.source.exchanged(first, second),
                    f"Line {first.lineno} takes `{taken[1]}` of {names} before line {second.lineno} gives other "
                    "tensors those names: what is passed on is the old one's.",
                    f"take it after line {second.lineno}",
                )  # fmt: skip


def _near(function: ast.FunctionDef) -> Iterator[tuple[ast.Assign, ast.Assign]]:
    """Two assignments of one block, the second of which stands at most three statements after the first."""
    for place, first in enumerate(function.body):
        for second in function.body[place + 1 : place + 4]:
            if isinstance(first, ast.Assign) and isinstance(second, ast.Assign):
                yield first, second


def _assigned(statement: ast.Assign) -> set[str]:
    targets = [part for target in statement.targets for part in ast.walk(target)]
    return {part.id for part in targets if isinstance(part, ast.Name)}


def _read(statement: ast.Assign) -> set[str]:
    return {part.id for part in ast.walk(statement.value) if isinstance(part, ast.Name)}


def joined_the_other_way(draft: Draft) -> Iterator[Mend]:
    """A list and its filling that are joined in the wrong order; of several, the last first."""
    joined = [n for n in draft.host_nodes if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Add)]
    filled = [n for n in joined if _fills(n.left) or _fills(n.right)]
    for node in filled:
        left, right = draft.source.of(node.left), draft.source.of(node.right)
        unlike = [str(n.lineno) for n in filled if _fills(n.left) is not _fills(node.left)]
        beside = f" Line {unlike[0]} puts it on the other side." if unlike else ""
        yield Mend(
            Family.STRIDES, 8 if node is filled[-1] else 9, node.lineno,
            draft.source.exchanged(node.left, node.right),
            f"Line {node.lineno} fills up `{right if _fills(node.left) else left}` on the wrong side.{beside}",
            "let the filling stand on the other side", None,
        )  # fmt: skip


def _fills(node: ast.expr) -> bool:
    """Whether a node is `[0] * n` or `(1,) * n`."""
    is_product = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)
    return is_product and isinstance(node.left, (ast.List, ast.Tuple))  # type: ignore[attr-defined]


RULES = (taken_too_early, joined_the_other_way)
