"""Arithmetic on sizes, as a domain writes it: "M + 1", "M * N <= 2**24"."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Mapping
from typing import Any

from gradekit.arithmetic import OF_TWO, SIGNS

_ALLOWED = ("+", "-", "*", "//", "/", "%", "**", "<", "<=", ">", ">=", "==", "!=")


def evaluate(expression: str, names: Mapping[str, Any]) -> Any:
    """The value of an arithmetic expression or one comparison: "M + 1", "M * N <= 2**24".

    `names` may map to anything that has Python's operators: ints here, a solver's terms in a proof.

    Raises:
        ValueError: it is no such expression, or has a name that is not among `names`.
    """
    try:
        return _value(_parsed(expression), names)
    except (KeyError, SyntaxError, TypeError) as error:
        raise ValueError(f"no value of {expression!r} ({error})") from None


@functools.lru_cache(maxsize=1024)
def _parsed(expression: str) -> ast.expr:
    return ast.parse(expression, mode="eval").body


def _value(node: ast.AST, names: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Name(id=name):
            return names[name]
        case ast.BinOp(left=left, op=sign, right=right):
            return _of_two(sign)(_value(left, names), _value(right, names))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, names)
        case ast.Compare(left=left, ops=[sign], comparators=[right]):
            return _of_two(sign)(_value(left, names), _value(right, names))
    raise SyntaxError(f"{type(node).__name__} is not allowed here")


def _of_two(operator: ast.AST) -> Callable[[Any, Any], Any]:
    if SIGNS[type(operator)] not in _ALLOWED:
        raise SyntaxError(f"{type(operator).__name__} is not allowed here")
    return OF_TWO[SIGNS[type(operator)]]


def names_in(expression: str) -> set[str]:
    """The names that the expression has.

    Raises:
        ValueError: it is no expression.
    """
    try:
        return {node.id for node in ast.walk(_parsed(expression)) if isinstance(node, ast.Name)}
    except SyntaxError as error:
        raise ValueError(f"{expression!r} is no expression ({error})") from None
