"""Diagnoses of gradients that autograd refuses for their shape: which one it is, and which line has made it."""

from __future__ import annotations

import ast
import re

from gradekit.causes import Cause
from gradekit.judge.evidence import Diagnosis
from gradekit.submission.parsed_source import ParsedSource

_KEEP_SHAPES = {"to", "type", "float", "half", "bfloat16", "contiguous", "clone"}

_REFUSED = re.compile(r"invalid gradient at index (\d+) - got (\[.*?\]) but expected shape compatible with (\[.*?\])")


def line_of_refused(text: str, message: str) -> int | None:
    """Where gradients are returned of which autograd has refused one for its shape; None where that is not clear."""
    source = ParsedSource.parsed(text) if _REFUSED.search(message) is not None else None
    lines = [statement.lineno for statement in _returns(source)] if source is not None else []
    return lines[0] if len(lines) == 1 else None


def refused_gradient(text: str, entry: str, message: str, cause: Cause) -> Diagnosis | None:
    """Which gradient has a shape that its input has not; None where the text does not show it.

    Args:
        text: the submission's source.
        entry: the function that was called.
        message: what torch has said.
        cause: why the check failed, which the diagnosis keeps.
    """
    said = _REFUSED.search(message)
    source = ParsedSource.parsed(text) if said is not None else None
    if said is None or source is None:
        return None
    number, got, wanted = int(said[1]), said[2], said[3]
    returns = _returns(source)
    names = source.differentiated or _arguments(source, entry)
    if len(returns) != 1 or number >= len(names):
        return None
    name = names[number]
    line = _made_at(source.backwards[0], _returned(returns[0], number))
    return Diagnosis(
        cause,
        f"The gradient of `{name}`, which line {line} makes, has the shape {got}, and `{name}` has {wanted}.",
        line,
        f"a gradient has the shape of its input: add it up over the dimensions that `{name}` has not, as in "
        ".reshape(-1, N).sum(0)",
    )


def _returns(source: ParsedSource) -> list[ast.Return]:
    return [node for function in source.backwards for node in ast.walk(function) if isinstance(node, ast.Return)]


def _arguments(source: ParsedSource, entry: str) -> list[str]:
    function = next((function for function in source.host if function.name == entry), None)
    return [argument.arg for argument in function.args.args] if function is not None else []


def _returned(statement: ast.Return, number: int) -> ast.expr | None:
    value = statement.value
    if isinstance(value, ast.Tuple):
        return value.elts[number] if number < len(value.elts) else None
    return value


def _made_at(function: ast.FunctionDef, value: ast.expr | None) -> int:
    """Where a returned value was last given its shape: in a line that assigns it, or else where it is returned."""
    if value is None:
        return function.lineno
    first = value
    while isinstance(first, ast.Call) and isinstance(first.func, ast.Attribute) and first.func.attr in _KEEP_SHAPES:
        first = first.func.value
    name = first.id if isinstance(first, ast.Name) else ""
    made = [
        node.lineno for node in ast.walk(function)
        if isinstance(node, ast.Assign) and any(isinstance(one, ast.Name) and one.id == name for one in node.targets)
    ]  # fmt: skip
    return max(made) if made else value.lineno
