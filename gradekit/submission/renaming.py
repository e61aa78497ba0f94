"""Other names for what one file of a submission defines, where another file of it uses the name for something else.

In Python, each module has its own names. In the one source that a submission of several files becomes, they share them:
so names that clash are changed, wherever the file means its own. Text to text: nothing is imported.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class CannotRename(ValueError):
    """A name is used in a way that cannot be followed in the text."""


def renamed(text: str, names: Mapping[str, str]) -> str:
    """`text` with each of `names`, where it means what the top level has by that name, replaced; lines stay lines.

    Raises:
        CannotRename: a class has one of the names for itself, a function declares one global, or a place is not known.
    """
    finder = _Finder(frozenset(names))
    finder.visit(ast.parse(text))
    lines = [line.encode() for line in text.split("\n")]
    for line, column, name in sorted({*finder.places}, reverse=True):
        row, old = lines[line - 1], name.encode()
        if row[column : column + len(old)] != old:  # Python 3.11 does not know the places inside of f-strings
            raise CannotRename(name)
        lines[line - 1] = row[:column] + names[name].encode() + row[column + len(old) :]
    return "\n".join(line.decode() for line in lines)


class _Finder(ast.NodeVisitor):
    """Finds the `places` (line, byte of the line, name) where some names mean those of the top level."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        self._hidden: list[frozenset[str]] = []
        self.places: list[tuple[int, int, str]] = []

    def visit(self, node: ast.AST) -> Any:
        """As usual; whatever has a scope of its own hides the names that it binds."""
        if isinstance(node, (ast.Global, ast.Nonlocal)) and self._names & {*node.names}:
            raise CannotRename(node.names[0])
        if isinstance(node, ast.ClassDef) and self._names & _bound(node):
            raise CannotRename(node.name)
        if isinstance(node, _DEFINITIONS):
            self._define(node)
        if not isinstance(node, _SCOPES):
            return super().visit(node)
        for outer in _outside(node):
            self.visit(outer)
        self._hidden.append(_bound(node))
        self.generic_visit(node)
        self._hidden.pop()
        return None

    def visit_Name(self, node: ast.Name) -> None:
        """A use, or a definition."""
        if self._means_the_top_level(node.id):
            self.places.append((node.lineno, node.col_offset, node.id))

    def _define(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        if self._means_the_top_level(node.name):
            word = {ast.FunctionDef: "def ", ast.AsyncFunctionDef: "async def ", ast.ClassDef: "class "}[type(node)]
            self.places.append((node.lineno, node.col_offset + len(word), node.name))

    def _means_the_top_level(self, name: str) -> bool:
        return name in self._names and not any(name in hidden for hidden in self._hidden)


def _outside(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a function that belong to the scope around it."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        yield from node.decorator_list
        yield from filter(None, [node.returns])
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        yield from filter(None, [*node.args.defaults, *node.args.kw_defaults])
        yield from (arg.annotation for arg in ast.walk(node.args) if isinstance(arg, ast.arg) and arg.annotation)


def _bound(node: ast.AST) -> frozenset[str]:
    """The names that a function, class or comprehension binds for itself."""
    found: set[str] = set()
    waiting = [*ast.iter_child_nodes(node)]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, _DEFINITIONS):
            found.add(inner.name)
            continue
        found |= {*_binds(inner)}
        if not isinstance(inner, _SCOPES):
            waiting += ast.iter_child_nodes(inner)
    return frozenset(found)


def _binds(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            yield name
        case ast.alias(name=name, asname=other):
            yield (other or name).partition(".")[0]
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name


def fresh(name: str, file: str, taken: str) -> str:
    """Another name for what `file` calls `name`, which does not stand in the text `taken`."""
    made = f"{name}_of_{re.sub(r'[^0-9A-Za-z]+', '_', file.removesuffix('.py'))}"
    while re.search(rf"\b{made}\b", taken):
        made += "_"
    return made
