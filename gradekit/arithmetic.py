"""Python's operators and Triton's whole-number functions, by the signs that source text writes: the one table of them.

Whoever reads or evaluates arithmetic (source text, size terms, domains, TTIR's integers) takes its signs from here.
"""

import ast
import operator
from collections.abc import Callable
from typing import Any

BINARY: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip

COMPARISONS: dict[type[ast.AST], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.Is: "is",
    ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip

UNARY: dict[type[ast.AST], str] = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~", ast.Not: "not"}

SIGNS: dict[type[ast.AST], str] = {**BINARY, **COMPARISONS}  # how an operator between two operands is written

OF_TWO: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "@": operator.matmul, "&": operator.and_, "|": operator.or_,
    "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne, "is": operator.is_,
    "is not": operator.is_not, "in": lambda one, many: one in many, "not in": lambda one, many: one not in many,
}  # fmt: skip
"""What Python makes of two operands, by the sign between them."""

OF_ONE: dict[str, Callable[[Any], Any]] = {
    "-": operator.neg, "+": operator.pos, "~": operator.invert, "not": operator.not_,
}  # fmt: skip
"""What Python makes of one operand, by the sign before it."""


def cdiv(x: Any, y: Any) -> Any:
    """triton.cdiv of anything that has Python's operators: `x / y`, rounded up."""
    return -(-x // y)


def next_power_of_2(n: int) -> int:
    """triton.next_power_of_2 of 64 bits: the smallest power of 2 that is at least `n`; 0 for 0 and below."""
    return 1 << (n - 1).bit_length() if n > 0 else 0
