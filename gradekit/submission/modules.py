"""A submission of several files as one source: its own modules stand before the file that imports them.

Only files beside that one are taken, and only those that it imports, by name or through each other. Each
begins with a line that names it, by which `parts` finds it again: a place in the source is shown as
"utils.py:3". Reads text, imports nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

_BEGIN = "# --- file {name} ---"
_PART = re.compile(r"(?m)^# --- file ([\w.-]+) ---$")

Read = Callable[[str], str | None]
"""The text of a file by its name, looked for beside the submission; None if there is no such file."""


class ModuleError(ValueError):
    """The files cannot be made one source: one sentence for the student."""


@dataclass(frozen=True)
class _Import:
    """An import statement of an own module: its lines, the module, and what is bound
    to which name (None: the module)."""

    first: int
    last: int
    module: str
    bound: tuple[tuple[str, str | None], ...]


def merged(name: str, text: str, read: Read) -> str:
    """The text of the file called `name` with the own modules that it imports; `text` itself where it imports none.

    Raises:
        ModuleError: two files give one name to different things, or an import asks for what its module does not define.
    """
    order: list[str] = []
    texts = {name: text}
    _visit(name, texts, order, read)
    if len(order) == 1:
        return text
    _agree(order, texts)
    future = sorted({name for part in order for _, names in _futures(texts[part]) for name in names})
    header = [f"from __future__ import {', '.join(future)}"] if future else []
    parts = [f"{_BEGIN.format(name=part)}\n{_with_bindings(texts[part], texts)}" for part in order]
    return "\n".join([*header, *parts])


def parts(text: str) -> tuple[tuple[str, int], ...]:
    """The files that a merged source is made of, each with its first line in it; empty for a source of one file."""
    return tuple((match[1], text.count("\n", 0, match.start()) + 2) for match in _PART.finditer(text))


def _visit(name: str, texts: dict[str, str], order: list[str], read: Read) -> None:
    """Add `name` to `order`, after what it imports."""
    for found in _own_imports(texts[name], read):
        file = f"{found.module}.py"
        if file not in texts:
            texts[file] = read(file) or ""
            _visit(file, texts, order, read)
    order.append(name)


def _own_imports(text: str, read: Read) -> Iterator[_Import]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # said elsewhere, with its line
        return
    for node in tree.body:
        for module, bound in _imported(node):
            if read(f"{module}.py") is not None:
                yield _Import(node.lineno, node.end_lineno or node.lineno, module, bound)


def _imported(node: ast.stmt) -> Iterator[tuple[str, tuple[tuple[str, str | None], ...]]]:
    if isinstance(node, ast.ImportFrom) and node.level < 2 and node.module and "." not in node.module:
        yield node.module, tuple((alias.asname or alias.name, alias.name) for alias in node.names)
    elif isinstance(node, ast.Import):
        for alias in node.names:
            if "." not in alias.name:
                yield alias.name, ((alias.asname or alias.name, None),)


def _agree(order: Sequence[str], texts: dict[str, str]) -> None:
    """Refuse a name that two files define differently: in one source, one would replace the other."""
    owners: dict[str, str] = {}
    for file in order:
        for name in _defined(texts[file]):
            if owners.setdefault(name, file) != file:
                raise ModuleError(f"{owners[name]} and {file} both define {name}: give one of the two another name")


def _defined(text: str) -> set[str]:
    """The names that the top level defines: functions, classes and variables, without imported names."""
    names = set[str]()
    for node in ast.parse(text).body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {inner.id for target in targets for inner in ast.walk(target) if isinstance(inner, ast.Name)}
    return names


def _futures(text: str) -> Iterator[tuple[tuple[int, int], list[str]]]:
    """The lines of each import from __future__, which has to stand at the very top, and its names."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            yield (node.lineno, node.end_lineno or node.lineno), [alias.name for alias in node.names]


def _with_bindings(text: str, texts: dict[str, str]) -> str:
    """`text` with its imports of own modules replaced, line for line, by what they bind."""
    lines = text.split("\n")
    by_line: dict[tuple[int, int], list[str]] = {place: [] for place, _ in _futures(text)}
    for found in _own_imports(text, lambda file: texts.get(file)):
        names = _defined(texts[f"{found.module}.py"])
        by_line.setdefault((found.first, found.last), []).extend(_bindings(found, names))
    for (first, last), statements in by_line.items():
        lines[first - 1 : last] = ["; ".join(statements) or "pass", *[""] * (last - first)]
    return "\n".join(lines)


def _bindings(found: _Import, names: set[str]) -> Iterator[str]:
    for bound, name in found.bound:
        if name is None:
            members = ", ".join(f"{member}={member}" for member in sorted(names))
            yield f"{bound} = __import__('types').SimpleNamespace({members})"
        elif name != "*" and name not in names:
            raise ModuleError(f"{found.module}.py does not define {name}, which is imported from it")
        elif name not in ("*", bound):
            yield f"{bound} = {name}"
