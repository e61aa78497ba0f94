"""What a submission's text alone tells of where to look: numbers that it compares with, and what host code does with sizes that
a traced size would not remember."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

MOST_NUMBERS = 60

FORGETFUL = frozenset(
    {"str", "repr", "hash", "bin", "hex", "oct", "chr", "ord", "bytes", "bytearray", "format", "ascii", "int", "float", "round",
     "pow", "set", "frozenset", "sorted", "sum", "eval", "exec", "range", "complex", "memoryview"}
)  # fmt: skip
"""Builtins whose results do not remember the size that they were made of."""

PLAIN_MODULES = frozenset({"torch", "triton", "tl", "typing", "F", "dataclasses", "functools", "__future__"})
SHAPES = frozenset({"shape", "stride", "size", "dim", "ndim", "strides"})
ADDRESSES = frozenset({"data_ptr", "storage_offset", "nbytes", "untyped_storage", "storage"})


@dataclass(frozen=True)
class SourceHints:
    """`whole` and `fractions` are the numbers of the text, those that are compared first; `lines` those of host code whose
    dealings with sizes cannot be followed."""

    whole: tuple[int, ...] = ()
    fractions: tuple[float, ...] = ()
    lines: tuple[int, ...] = ()


def hints(text: str) -> SourceHints:
    """Those of a submission; none where it is no Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return SourceHints()
    compared = [n for node in ast.walk(tree) if isinstance(node, ast.Compare) for n in _numbers(node)]
    whole = dict.fromkeys(n for n in (*compared, *_numbers(tree)) if type(n) is int and n > 1)
    fractions = dict.fromkeys(float(n) for n in compared if type(n) in (int, float))
    lines = sorted({line for function in _host_functions(tree) for line in _forgets(function)})
    return SourceHints(tuple(whole)[:MOST_NUMBERS], tuple(fractions)[:MOST_NUMBERS], tuple(lines))


def _numbers(tree: ast.AST) -> Iterator[int | float]:
    for node in ast.walk(tree):
        value = node.value if isinstance(node, ast.Constant) else None
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield value


def _host_functions(tree: ast.Module) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            decorators = getattr(node, "decorator_list", [])
            if not any("jit" in ast.unparse(one) for one in decorators):
                yield node


def _forgets(function: ast.AST) -> Iterator[int]:
    for node in ast.walk(function):
        if isinstance(node, ast.expr) and _is_forgetful(node):
            yield node.lineno


def _is_forgetful(node: ast.expr) -> bool:
    match node:
        case ast.JoinedStr():
            return True
        case ast.Call(func=ast.Name(id=name), args=args) if name in FORGETFUL:
            return any(_has_number(arg) for arg in args)
        case ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr=name)):
            return name in ADDRESSES or module in (
                "math",
                "hashlib",
                "random",
                "zlib",
                "struct",
                "operator",
                "bisect",
                "time",
            )
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in ADDRESSES
        case ast.Compare(ops=ops):
            return any(isinstance(op, (ast.In, ast.NotIn)) for op in ops)
        case ast.Subscript(value=value, slice=index):
            return not isinstance(index, (ast.Constant, ast.Slice, ast.Tuple, ast.UnaryOp)) and not _is_shape(value)
        case ast.BinOp(op=ast.Mod(), left=ast.Constant(value=str())):
            return True
    return False


def _has_number(node: ast.AST) -> bool:
    """Whether it may be a size: anything but constants, numbers of dimensions, and lengths."""
    return not isinstance(node, ast.Constant) and not any(
        text in ast.unparse(node) for text in ("dim", "len(", "rank", "num_stages")
    )


def _is_shape(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(attr=name) | ast.Call(func=ast.Attribute(attr=name)):
            return name in SHAPES
        case ast.Name(id=name):
            return name in SHAPES or "kernel" in name
    return False
