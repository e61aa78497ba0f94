"""Diagnoses of gradients that autograd refuses for their shape: which one it is, and which line has made it."""

from __future__ import annotations

import ast
import re

from gradekit.causes import Cause
from gradekit.judge.evidence import Diagnosis
from gradekit.submission.parsed_source import ParsedSource

_REFUSED = re.compile(r"invalid gradient at index (\d+) - got (\[.*?\]) but expected shape compatible with (\[.*?\])")


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
    backward = [function for function in source.host if function.name == "backward"]
    returns = [node for function in backward for node in ast.walk(function) if isinstance(node, ast.Return)]
    name = _differentiated(source, entry, number)
    if len(returns) != 1 or not name:
        return None
    line = _made_at(backward[0], _returned(returns[0], number))
    return Diagnosis(
        cause,
        f"The gradient of `{name}`, which line {line} makes, has the shape {got}, and `{name}` has {wanted}.",
        line,
        "a gradient has the shape of its input: what was spread over several dimensions is added up over all of these "
        "again, and over no other",
    )


def _differentiated(source: ParsedSource, entry: str, number: int) -> str:
    """The argument that a gradient is of: one of `forward`, behind ctx, or else of the operator; "" where none is."""
    forward = next((function for function in source.host if function.name == "forward"), None)
    operator = next((function for function in source.host if function.name == entry), None)
    function, first = (forward, 1) if forward is not None else (operator, 0)
    names = [argument.arg for argument in function.args.args[first:]] if function is not None else []
    return names[number] if number < len(names) else ""


def _returned(statement: ast.Return, number: int) -> ast.expr | None:
    value = statement.value
    if isinstance(value, ast.Tuple):
        return value.elts[number] if number < len(value.elts) else None
    return value


def _made_at(function: ast.FunctionDef, value: ast.expr | None) -> int:
    """Where the name that a returned value begins with was last given what it is, or else where it is returned."""
    if value is None:
        return function.lineno
    first = value
    while isinstance(first, (ast.Attribute, ast.Call)):
        first = first.value if isinstance(first, ast.Attribute) else first.func
    name = first.id if isinstance(first, ast.Name) else ""
    made = [
        node.lineno for node in ast.walk(function)
        if isinstance(node, ast.Assign) and any(isinstance(one, ast.Name) and one.id == name for one in node.targets)
    ]  # fmt: skip
    return max(made) if made else value.lineno
