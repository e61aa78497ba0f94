"""Mends of products of matrices: tl.dot with an operand turned, or left out."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradekit.mending.draft import Draft
from gradekit.mending.kernel_text import KernelDraft, calls, is_call
from gradekit.mending.mend import Family, Mend


def turned_operand(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """An operand of tl.dot that is to be transposed, or is transposed and must not be; the two in the wrong order."""
    for call in calls(kernel.nodes, "tl.dot"):
        if len(call.args) < 2:
            continue
        for operand in call.args[:2]:
            text, plain = kernel.source.of(operand), _untransposed(kernel, operand)
            new = plain or f"tl.trans({text})"
            what = "is transposed there, and must not be" if plain else "must be transposed there"
            yield Mend(
                Family.FORMULA, 18, operand.lineno, (kernel.replaced(operand, new),),
                f"The operand `{text}` of tl.dot in line {operand.lineno} {what}.",
                "leave out the transposition" if plain else "transpose it with tl.trans", None, kernel.name,
            )  # fmt: skip
        first, second = call.args[:2]
        edits = (kernel.replaced(first, kernel.source.of(second)), kernel.replaced(second, kernel.source.of(first)))
        yield Mend(
            Family.FORMULA, 24, call.lineno, edits,
            f"The operands of tl.dot in line {call.lineno} are swapped.", "a product of matrices has an order", None,
            kernel.name,
        )  # fmt: skip


def no_product(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """`acc += a * b` of two tiles, which multiplies element by element, in a kernel without a product of matrices."""
    tiles = {a for a, vs in kernel.values.items() if any(is_call(v, "tl.load") and kernel.rank_of(v) == 2 for v in vs)}
    for statement in kernel.statements if not kernel.multiplies else ():
        value = statement.value if isinstance(statement, ast.AugAssign) else None
        sides = (value.left, value.right) if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult) else ()
        if value is not None and len(sides) == 2 and all(isinstance(s, ast.Name) and s.id in tiles for s in sides):
            one, other = map(kernel.source.of, sides)
            yield Mend(
                Family.FORMULA, 2, value.lineno, (kernel.replaced(value, f"tl.dot({one}, {other})"),),
                f"Line {value.lineno} multiplies the tiles {one} and {other} element by element: a product of matrices "
                "is tl.dot.",
                f"multiply with tl.dot({one}, {other})", None, kernel.name,
            )  # fmt: skip


def _untransposed(kernel: KernelDraft, node: ast.expr) -> str:
    if is_call(node, "tl.trans") and isinstance(node, ast.Call):
        return kernel.source.of(node.args[0])
    if isinstance(node, ast.Attribute) and node.attr == "T":
        return kernel.source.of(node.value)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "to":
        inner = _untransposed(kernel, node.func.value)
        return f"{inner}.to({', '.join(map(kernel.source.of, node.args))})" if inner else ""
    return ""


RULES = (turned_operand, no_product)
