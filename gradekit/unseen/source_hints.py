"""What a submission's text alone tells of where to look: numbers that it compares with, and what host code does with
sizes that a traced size would not remember."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

MOST_NUMBERS = 60

LARGEST = 1 << 63
"""Numbers of the text are below it: nothing that is compared with a size can be more."""

FORGETFUL = frozenset(
    {"str", "repr", "hash", "bin", "hex", "oct", "chr", "ord", "bytes", "bytearray", "format", "ascii", "int", "float",
    "round",
     "pow", "set", "frozenset", "sorted", "sum", "eval", "exec", "range", "complex", "memoryview"}
)  # fmt: skip
"""Builtins whose results do not remember the size that they were made of."""

FORGETFUL_MODULES = frozenset(
    {"math", "hashlib", "random", "zlib", "struct", "operator", "bisect", "time", "re", "json", "itertools"}
)
EXACT = frozenset({"prod", "ceil", "floor", "mul", "sub", "add"})
"""Functions of these modules through which a size keeps its origin."""

LIMITING = frozenset({"min", "max", "minimum", "maximum", "clamp"})
"""Functions that compare one number with another."""

ADDRESSES = frozenset({"data_ptr", "storage_offset", "nbytes", "untyped_storage", "storage"})
IN_BYTES = frozenset({"nbytes", "untyped_storage", "storage"})
"""Those that tell a tensor's size."""


DTYPES = frozenset({"dtype", "element_size", "itemsize"})
"""What asks for the dtype of a tensor."""


@dataclass(frozen=True)
class SourceHints:
    """`whole` and `fractions` are the numbers of the text, those that are compared first; `lines` those of host code
    whose dealings with sizes cannot be followed, `places` those that ask where a tensor lies, `by_dtype` those of
    conditions that stand beside a question for a dtype."""

    whole: tuple[int, ...] = ()
    fractions: tuple[float, ...] = ()
    lines: tuple[int, ...] = ()
    places: tuple[int, ...] = ()
    by_dtype: frozenset[int] = frozenset()


def hints(text: str) -> SourceHints:
    """Those of a submission; none where it is no Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return SourceHints()
    compared = [n for node in ast.walk(tree) if _compares(node) for n in _numbers(node)]
    whole = dict.fromkeys(n for n in (*compared, *_masked(tree), *_numbers(tree)) if type(n) is int and n > 1)
    fractions = dict.fromkeys(float(n) for n in compared if type(n) in (int, float))
    tables = {name for node in ast.walk(tree) for name in _tables(node)}
    lines = sorted({line for function in _host_functions(tree) for line in _forgets(function, tables)})
    places = sorted({line for function in _host_functions(tree) for line in _asks_where(function)})
    by_dtype = frozenset(line for function in _host_functions(tree) for line in _beside_dtypes(function))
    numbers = tuple(whole)[:MOST_NUMBERS], tuple(fractions)[:MOST_NUMBERS]
    return SourceHints(*numbers, tuple(lines), tuple(places), by_dtype)


def _numbers(tree: ast.AST) -> Iterator[int | float]:
    for node in ast.walk(tree):
        value = node.value if isinstance(node, ast.Constant) else None
        if isinstance(value, str) and len(value) < 40:
            yield from (int(digits) for digits in re.findall(r"[0-9]{1,9}", value))
        elif isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < LARGEST:
            yield value


def _compares(node: ast.AST) -> bool:
    """Whether it is a comparison, or a minimum or maximum, which is one too."""
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in LIMITING
    return isinstance(node, ast.Compare)


def _masked(tree: ast.AST) -> Iterator[int]:
    """What n may be for "n ^ a == b": the numbers of such comparisons, by pairs."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and any(isinstance(part, ast.BitXor) for part in ast.walk(node)):
            numbers = [n for n in _numbers(node) if type(n) is int]
            yield from (a ^ b for a, b in itertools.combinations(numbers, 2))


def _host_functions(tree: ast.Module) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            decorators = getattr(node, "decorator_list", [])
            if not any("jit" in ast.unparse(one) for one in decorators):
                yield node


_DISPLAYS = (ast.List, ast.Tuple, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)


def _tables(node: ast.AST) -> Iterator[str]:
    """The names that a statement gives to lists, tuples, dicts and sets."""
    if isinstance(node, ast.Assign) and isinstance(node.value, _DISPLAYS):
        yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def _forgets(function: ast.AST, tables: set[str]) -> Iterator[int]:
    for node in ast.walk(function):
        if isinstance(node, ast.expr) and (_is_forgetful(node) or _looks_up(node, tables)):
            yield node.lineno


def _asks_where(function: ast.AST) -> Iterator[int]:
    """Lines that ask where in memory a tensor lies."""
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and node.attr in ADDRESSES:
            yield node.lineno


def _beside_dtypes(function: ast.AST) -> Iterator[int]:
    """Lines of conditions that ask for a dtype, that hold others which do, or are held by them."""
    for node in ast.walk(function):
        if isinstance(node, (ast.If, ast.IfExp, ast.BoolOp)) and any(map(_asks_dtype, ast.walk(node))):
            test = node if isinstance(node, ast.BoolOp) else node.test
            whole = test if not any(map(_asks_dtype, ast.walk(test))) else node
            yield from range(whole.lineno, (whole.end_lineno or whole.lineno) + 1)


def _asks_dtype(node: ast.AST) -> bool:
    parts = ast.walk(node) if isinstance(node, ast.Compare) else ()
    return any(isinstance(part, ast.Attribute) and part.attr in DTYPES for part in parts)


def _looks_up(node: ast.expr, tables: set[str]) -> bool:
    """Whether something is looked up in a table by a number that is computed."""
    match node:
        case ast.Subscript(value=ast.Name(id=name), slice=index):
            return name in tables and not _is_plain(index)
        case ast.Subscript(value=value, slice=index):
            return isinstance(value, _DISPLAYS) and not _is_plain(index)
        case ast.Call(func=ast.Attribute(value=value, attr="get")):
            return isinstance(value, _DISPLAYS) or isinstance(value, ast.Name) and value.id in tables
    return False


def _is_plain(index: ast.expr) -> bool:
    """Whether an index is a constant, or made of comparisons and dtypes, which can be followed."""
    if isinstance(index, ast.Tuple):
        return all(map(_is_plain, index.elts))
    return isinstance(index, (ast.Constant, ast.Slice, ast.Compare, ast.BoolOp)) or "dtype" in ast.unparse(index)


def _is_forgetful(node: ast.expr) -> bool:
    match node:
        case ast.Attribute(attr=name) if name in IN_BYTES:
            return True
        case ast.JoinedStr() | ast.Call(func=ast.Name(id="__import__")):
            return True
        case ast.Call(func=ast.Name(id=name), args=args) if name in FORGETFUL:
            return any(_has_number(arg) for arg in args)
        case ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr=name)):
            return module in FORGETFUL_MODULES and name not in EXACT
        case ast.Compare(left=left, ops=ops, comparators=[*others]):
            contained = any(isinstance(op, (ast.In, ast.NotIn)) for op in ops)
            exact = all(isinstance(other, (ast.Tuple, ast.List)) for other in others) or "dtype" in ast.unparse(left)
            return contained and not exact
        case ast.BinOp(op=ast.Mod(), left=ast.Constant(value=str())):
            return True
    return False


def _has_number(node: ast.AST) -> bool:
    """Whether it may be a size: anything but constants, numbers of dimensions, and lengths."""
    return not isinstance(node, ast.Constant) and not any(
        text in ast.unparse(node) for text in ("dim", "len(", "rank", "num_stages")
    )
