"""Which rooms of gradekit/ import which: read from the source, so that nothing has to be imported to know it.

A room is a package or module right below gradekit/. Rooms stand in layers: a room's layer is one above the highest that
it imports. tests/floors holds the code to that, and tools/rooms.py draws it.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "gradekit"


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    files = [file for file in sorted(PACKAGE.rglob("*.py")) if "_assignments" not in file.parts]
    return {_name(file): file for file in files}


def _name(file: Path) -> str:
    parts = [*file.relative_to(PACKAGE.parent).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room(module: str) -> str:
    """gradekit.engine.run -> engine; the package itself -> gradekit."""
    return (module.split(".") + [""])[1] or "gradekit"


def imports(file: Path, known: dict[str, Path]) -> Iterator[str]:
    """The modules of gradekit that `file` imports, anywhere in it, also for type checking alone."""
    for node in ast.walk(tree(file)):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from named(node, known)


@functools.cache
def tree(file: Path) -> ast.Module:
    """The syntax tree of a file, parsed once."""
    return ast.parse(file.read_text(encoding="utf-8"))


def named(node: ast.Import | ast.ImportFrom, known: dict[str, Path]) -> Iterator[str]:
    """The modules of gradekit that an import statement names; `from gradekit import engine` names gradekit.engine."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "gradekit")
    elif (node.module or "").split(".")[0] == "gradekit":
        for alias in node.names:
            longer = f"{node.module}.{alias.name}"
            yield longer if longer in known else str(node.module)


def graph() -> dict[str, set[str]]:
    """For each room, the other rooms that its modules import; the package's own __init__ is no room."""
    known = modules()
    found: dict[str, set[str]] = {}
    for module, file in known.items():
        others = {room(name) for name in imports(file, known)} - {room(module), "gradekit"}
        if room(module) != "gradekit":
            found.setdefault(room(module), set()).update(others)
    return found


def layers(rooms: dict[str, set[str]]) -> list[list[str]]:
    """The rooms from the lowest layer up, each layer in alphabetical order.

    Raises:
        ValueError: rooms import each other in a circle.
    """
    left, found, below = dict(rooms), list[list[str]](), set[str]()
    while left:
        layer = sorted(name for name, needed in left.items() if needed <= below)
        if not layer:
            raise ValueError(f"these rooms import each other: {sorted(left)}")
        found.append(layer)
        below.update(layer)
        for name in layer:
            del left[name]
    return found
