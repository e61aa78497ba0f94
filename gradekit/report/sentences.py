"""The sentences of the tutor and of the judge, read from gradekit's own source and its tables of words and of idioms:
what varies in them is {1}, {2} ... in code and words, and $name in idioms."""

from __future__ import annotations

import ast
import functools
import itertools
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import gradekit
from gradekit.assignment import discover

ROOMS = {
    "judge": "What is seen in results and in memory",
    "relations": "What is seen between several calls",
    "exact": "What is seen in exact arithmetic",
    "subject": "What is seen of a call",
    "repair": "What the tutor says of a mistake",
    "submission": "What is said of a file that cannot be read",
    "quiz": "What is said of answers",
}
"""By room of the source, the heading of its sentences."""

LEAST_WORDS = 3
"""Shorter texts are parts of sentences."""

_FOR_STAFF = {"ValueError", "TypeError", "AssertionError", "RuntimeError", "KeyError"}
"""What is raised with these is no student's."""

_NAMES = {"survived", "NotWalked", "ContextVar"}
"""What these take is a name of something inside, which nobody is told."""


@functools.cache
def sentences(room: str) -> tuple[tuple[str, ...], ...]:
    """Each sentence or part of one that a room has in code or in its tables, with what it has beside it, such as the
    advice."""
    folder = Path(gradekit.__file__).parent / room
    files = sorted(folder.rglob("*.py"))
    found = [row for file in files for row in _rows(ast.parse(file.read_text(encoding="utf-8")))]
    own = [each.folder / "idioms.toml" for each in discover().values()] if room == "repair" else []
    idioms = filter(Path.is_file, [*sorted(folder.rglob("*.toml")), *own])
    tables = [tomllib.loads(file.read_text(encoding="utf-8")) for file in idioms]
    rows = (row for table in tables for row in table.values())
    told = (tuple(_numbered(row[key]) for key in ("says", "hint") if key in row) for row in rows)
    return tuple(dict.fromkeys([*filter(None, told), *found]))


def _numbered(text: str) -> str:
    """A text of a table with its {holes} as those of code are written."""
    numbers = itertools.count(1)
    return re.sub(r"\{\w+\}", lambda _: f"{{{next(numbers)}}}", text)


def _rows(tree: ast.AST) -> Iterator[tuple[str, ...]]:
    """The texts of each call, tuple or statement, those of one side by side; docstrings are none."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Raise) and _raises(node) in _FOR_STAFF:
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _NAMES:
            continue
        parts = [part.value if isinstance(part, ast.keyword) else part for part in ast.iter_child_nodes(node)]
        if isinstance(node, ast.JoinedStr):
            parts = [part.value for part in parts if isinstance(part, ast.FormattedValue)]
        if texts := tuple(filter(None, map(template, parts))):
            yield texts
        yield from _rows(node)


def _raises(node: ast.Raise) -> str:
    function = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    return function.id if isinstance(function, ast.Name) else ""


def template(node: ast.AST) -> str:
    """The text of a string with {1}, {2} ... for what it takes in; "" for anything else, and for a few words."""
    if isinstance(node, ast.JoinedStr):
        pieces = [part.value if isinstance(part, ast.Constant) else None for part in node.values]
    else:
        pieces = [node.value] if isinstance(node, ast.Constant) else []
    numbers = iter(range(1, len(pieces) + 1))
    text = "".join(str(piece) if isinstance(piece, str) else f"{{{next(numbers)}}}" for piece in pieces)
    return text if sum(word.isalpha() for word in text.split()) >= LEAST_WORDS and not set("\n\\") & set(text) else ""
