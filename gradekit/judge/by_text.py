"""Diagnoses of what a kernel's text says, whatever values it was given: it cannot be meant."""

from __future__ import annotations

import ast

from gradekit.judge.evidence import Diagnosis, Evidence
from gradekit.submission.parsed_source import ParsedSource


def unparenthesized_masks(evidence: Evidence) -> Diagnosis | None:
    """A kernel compares with what `&` makes of two comparisons' sides: `i < M & j < N` means `i < (M & j) < N`."""
    try:
        source = ParsedSource(evidence.text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    meant = ((node, _meant(node)) for node in source.in_kernels() if isinstance(node, ast.Compare))
    found = next(((node, parts) for node, parts in meant if len(parts) > 1), None)
    if found is None:
        return None
    node, parts = found
    inner = next(each for each in node.comparators if isinstance(each, ast.BinOp) and isinstance(each.op, ast.BitAnd))
    return Diagnosis(
        evidence.failure.cause,
        f"Line {node.lineno} compares with `{ast.unparse(inner)}`: `&` binds tighter than `<`.",
        node.lineno,
        f"put each comparison into parentheses: {' & '.join(f'({part})' for part in parts)}",
    )


def _meant(chain: ast.Compare) -> list[str]:
    """The comparisons of a chain, cut at each `&` between its first operand and its last."""
    operands = [chain.left, *chain.comparators]
    parts = [ast.unparse(operands[0])]
    for number, (operator, operand) in enumerate(zip(chain.ops, operands[1:], strict=True), 1):
        sign = _SIGNS.get(type(operator))
        if sign is None:
            return []
        is_joined = isinstance(operand, ast.BinOp) and isinstance(operand.op, ast.BitAnd)
        if is_joined and number < len(chain.ops):
            parts[-1] += f" {sign} {ast.unparse(operand.left)}"  # type: ignore[attr-defined]
            parts.append(ast.unparse(operand.right))  # type: ignore[attr-defined]
        else:
            parts[-1] += f" {sign} {ast.unparse(operand)}"
    return parts


_SIGNS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
