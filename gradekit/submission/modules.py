"""A submission of several files as one source: its own modules stand before the file that imports them.

Only files beside that one and in folders beside it are taken, and those alone that it imports, also through each other.
Each begins with a line that names it, by which `parts` finds it again: a place is shown as "utils.py:3".
"""

import ast
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from gradekit.submission.syntax import blocks

_BEGIN = "# --- file {name} ---"
_PART = re.compile(r"(?m)^# --- file ([\w./-]+) ---$")

_MODULE = re.compile(
    r"(\w+) = __import__\('types'\)\.ModuleType\('\1'\); vars\(\1\)\.update\((?:(\w+)=\2(?:_of_\w+)?(?:, (?=\w))?)*\)"
)
"""What an import of a whole module becomes: a module with names of this source, and nothing else."""

Read = Callable[[str], str | None]
"""The text of a file by its name ("utils.py", "helpers/ops.py"), looked for beside the submission; None without one."""


class ModuleError(ValueError):
    """The files cannot be made one source: one sentence for the student."""


@dataclass(frozen=True)
class _Import:
    """An import of an own module: its lines, its indent, the file, and what is bound (None: the module)."""

    lines: tuple[int, int]
    indent: int
    file: str
    bound: tuple[tuple[str, str | None], ...]


def merged(name: str, text: str, read: Read) -> str:
    """The text of the file called `name` with the own modules that it imports; `text` itself where there are none.
    Raises ModuleError where two meanings of a name cannot be told apart, or an imported name is not defined."""
    order: list[str] = []
    texts = {name: text}
    read = functools.cache(read)
    _visit(name, texts, order, read)
    if len(order) == 1:
        return text
    names = _own_names(order, texts)
    future = sorted({name for part in order for _, names in _futures(texts[part]) for name in names})
    header = [f"from __future__ import {', '.join(future)}"] if future else []
    parts = [f"{_BEGIN.format(name=part)}\n{_with_bindings(part, texts, names)}" for part in order]
    return "\n".join([*header, *parts])


def parts(text: str) -> tuple[tuple[str, int], ...]:
    """The files that a merged source is made of, each with its first line in it; empty for a source of one file."""
    return tuple((match[1], text.count("\n", 0, match.start()) + 2) for match in _PART.finditer(text))


def imported_from(text: str, name: str) -> str | None:
    """The module from which `text` imports `name` at its top level; None where it does not."""
    for node in _top_level(ast.parse(text).body):
        if isinstance(node, ast.ImportFrom) and any((one.asname or one.name) == name for one in node.names):
            return "." * node.level + (node.module or "")
    return None


def without_modules(text: str) -> str:
    """A source without the modules that `merged` has made in it."""
    return _MODULE.sub(r"\1 = None", text)


def _visit(name: str, texts: dict[str, str], order: list[str], read: Read) -> None:
    for found in _own_imports(name, texts[name], read):
        if found.file not in texts:
            texts[found.file] = read(found.file) or ""
            _visit(found.file, texts, order, read)
    order.append(name)


def _own_imports(name: str, text: str, read: Read) -> Iterator[_Import]:
    """The imports of own modules in the file called `name`, those inside of functions too."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # said elsewhere, with its line
        return
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            lines = node.lineno, node.end_lineno or node.lineno
            yield from (_Import(lines, node.col_offset, *found) for found in _imported(node, name, read))


Bound = tuple[tuple[str, str | None], ...]


def _imported(node: ast.Import | ast.ImportFrom, name: str, read: Read) -> Iterator[tuple[str, Bound]]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            file = _file(alias.name, read) if alias.asname or "." not in alias.name else None
            if file:
                yield file, ((alias.asname or alias.name, None),)
        return
    base = _package(name, node.level)
    if base is None:
        return
    module = ".".join(filter(None, (base, node.module)))
    submodules = {alias.name: _file(f"{module}.{alias.name}", read) for alias in node.names if module or node.level}
    yield from ((one, ((a.asname or a.name, None),)) for a in node.names if (one := submodules.get(a.name)))
    rest = tuple((alias.asname or alias.name, alias.name) for alias in node.names if not submodules.get(alias.name))
    if rest and (file := _file(module, read)):
        yield file, rest


def _package(name: str, level: int) -> str | None:
    """The package from which an import in the file called `name` starts, "" beside the submission; None above it."""
    folders = PurePosixPath(name).parent.parts
    return ".".join(folders[: len(folders) - level + 1]) if 0 < level <= len(folders) + 1 else None if level else ""


def _file(module: str, read: Read) -> str | None:
    """The file of a module's dotted name; None where it is not the submission's own, as torch and Triton never are."""
    if module.partition(".")[0] in ("torch", "triton"):
        return None
    path = module.lstrip(".").replace(".", "/")
    files = (f"{path}.py", f"{path}/__init__.py")
    return next((file for file in files if path and read(file) is not None), None)


Names = dict[str, dict[str, str]]  # what the names of a file have become, for those that were changed


def _own_names(order: Sequence[str], texts: dict[str, str]) -> Names:
    """Other names for what an earlier file defines otherwise: the last file, which has the entry, keeps its own."""
    *modules, main = order
    clashing = _clashing(order, texts)
    every, names = "\n".join(texts.values()), Names({main: {}})
    for file in modules:
        found = _own_imports(file, texts[file], texts.get)
        handed_on = {
            bound: names[one.file][bound]
            for one in found
            for bound, member in _bound(one, texts[one.file])
            if member == bound and bound in names.get(one.file, {})
        }
        mine = {name: fresh(name, file, every) for name in _meanings(file, texts) if name in clashing}
        names[file] = handed_on | mine
    return names


def _clashing(order: Sequence[str], texts: dict[str, str]) -> set[str]:
    found: dict[str, list[list[str]]] = {}
    for file in order:
        for name, meaning in _meanings(file, texts).items():
            found.setdefault(name, []).append(meaning)
    return {name for name, meanings in found.items() if any(meaning != meanings[0] for meaning in meanings)}


def _meanings(file: str, texts: dict[str, str]) -> dict[str, list[str]]:
    """What a file's top level defines, with its statements; and own modules, and what is in them, under other names."""
    found: dict[str, list[str]] = {}
    for name, statement in _definitions(_top_level(ast.parse(texts[file]).body)):
        found.setdefault(name, []).append(statement)
    for one in _own_imports(file, texts[file], texts.get):
        for bound, member in one.bound:
            if bound != member:
                found.setdefault(bound, []).append(f"{one.file}: {member}")
    return found


def _bound(found: _Import, text: str) -> Iterator[tuple[str, str | None]]:
    """What an import binds, a star written out."""
    for bound, name in found.bound:
        if name == "*":
            yield from ((one, one) for one in sorted(names_of(text)) if not one.startswith("_"))
        else:
            yield bound, name


def _definitions(nodes: Iterable[ast.stmt]) -> Iterator[tuple[str, str]]:
    for node in nodes:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name, ast.dump(node)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for inner in (inner for target in targets for inner in ast.walk(target)):
                if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                    yield inner.id, ast.dump(node)


def names_of(text: str, *, branches: bool = True) -> tuple[str, ...]:
    """The names that the top level binds, in order; those in an if without an else only with `branches`."""
    found: dict[str, None] = {}
    for node in _top_level(ast.parse(text).body, branches=branches):
        imported = node.names if isinstance(node, (ast.Import, ast.ImportFrom)) else ()
        found |= dict.fromkeys((alias.asname or alias.name).partition(".")[0] for alias in imported)
        found |= dict.fromkeys(name for name, _ in _definitions([node]))
    return tuple(name for name in found if name != "*")


def _top_level(body: Sequence[ast.stmt], *, branches: bool = True) -> Iterator[ast.stmt]:
    """The statements of a module, those inside of an if, a try or a with included."""
    for node in body:
        yield node
        if branches or not isinstance(node, ast.If) or node.orelse:
            for block in blocks(node):
                yield from _top_level(block, branches=branches)


def _futures(text: str) -> Iterator[tuple[tuple[int, int], list[str]]]:
    """The lines of each import from __future__, which has to stand at the very top, and its names."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            yield (node.lineno, node.end_lineno or node.lineno), [alias.name for alias in node.names]


def _with_bindings(name: str, texts: dict[str, str], names: Names) -> str:
    """The text of a file, its imports of own modules replaced line for line by what they bind, with `names` changed."""
    text = texts[name]
    lines = _renamed(name, text, names[name]).split("\n")
    by_line: dict[tuple[tuple[int, int], int], list[str]] = {(place, 0): [] for place, _ in _futures(text)}
    for found in _own_imports(name, text, texts.get):
        by_line.setdefault((found.lines, found.indent), []).extend(
            _bindings(found, texts[found.file], names[name], names.get(found.file, {}))
        )
    for ((first, last), indent), statements in by_line.items():
        lines[first - 1 : last] = [" " * indent + ("; ".join(statements) or "pass"), *[""] * (last - first)]
    return "\n".join(lines)


def _renamed(file: str, text: str, names: dict[str, str]) -> str:
    try:
        return renamed(text, names) if names else text
    except CannotRename as error:
        why = f"{file} and another file both define {error}, in a way that cannot be told apart"
        raise ModuleError(f"{why}: give one of the two another name") from None


def _bindings(found: _Import, text: str, here: dict[str, str], there: dict[str, str]) -> Iterator[str]:
    """Statements for what an import binds of the module whose source is `text`: a kernel may call what is in a module,
    and in no other namespace. Names are changed as `here` and `there` say."""
    names, always = names_of(text), names_of(text, branches=False)
    for bound, name in _bound(found, text):
        target = here.get(bound, bound)
        if name is None:
            members = ", ".join(f"{member}={there.get(member, member)}" for member in sorted(always))
            yield f"{target} = __import__('types').ModuleType('{target}'); vars({target}).update({members})"
        elif name not in names:
            raise ModuleError(f"{found.file} does not define {name}, which is imported from it")
        elif target != there.get(name, name):
            yield f"{target} = {there.get(name, name)}"


# --- names that clash: each module has its own, one source has one of each --------------------------------------------

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class CannotRename(ValueError):
    """A name is used in a way that cannot be followed in the text."""


def renamed(text: str, names: Mapping[str, str]) -> str:
    """`text` with each of `names`, where it means the top level's, replaced; lines stay lines. Raises CannotRename
    where a class has such a name for itself, a function declares one global, or a place is not known."""
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
        if isinstance(node, ast.ClassDef) and self._names & _own_names_of(node):
            raise CannotRename(node.name)
        if isinstance(node, _DEFINITIONS) and self._means_the_top_level(node.name):
            word = {ast.FunctionDef: "def ", ast.AsyncFunctionDef: "async def ", ast.ClassDef: "class "}[type(node)]
            self.places.append((node.lineno, node.col_offset + len(word), node.name))
        if not isinstance(node, _SCOPES):
            return super().visit(node)
        for outer in _outside(node):
            self.visit(outer)
        self._hidden.append(_own_names_of(node))
        self.generic_visit(node)
        self._hidden.pop()
        return None

    def visit_Name(self, node: ast.Name) -> None:
        """A use, or a definition."""
        if self._means_the_top_level(node.id):
            self.places.append((node.lineno, node.col_offset, node.id))

    def _means_the_top_level(self, name: str) -> bool:
        return name in self._names and not any(name in hidden for hidden in self._hidden)


def _outside(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        yield from node.decorator_list
        yield from filter(None, [node.returns])
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        yield from filter(None, [*node.args.defaults, *node.args.kw_defaults])
        yield from (arg.annotation for arg in ast.walk(node.args) if isinstance(arg, ast.arg) and arg.annotation)


def _own_names_of(node: ast.AST) -> frozenset[str]:
    found: set[str] = set()
    waiting = [*ast.iter_child_nodes(node)]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, _DEFINITIONS):
            found.add(inner.name)
            continue
        found |= {*binds(inner)}
        if not isinstance(inner, _SCOPES):
            waiting += ast.iter_child_nodes(inner)
    return frozenset(found)


def binds(node: ast.AST) -> Iterator[str]:
    """The name that `node` itself binds, but for definitions."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            yield name
        case ast.alias(name=name, asname=other):
            yield (other or name).partition(".")[0]
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case ast.MatchMapping(rest=str(name)):
            yield name


def fresh(name: str, file: str, taken: str) -> str:
    """Another name for what `file` calls `name`, which does not stand in the text `taken`."""
    made = f"{name}_of_{re.sub(r'[^0-9A-Za-z]+', '_', file.removesuffix('.py'))}"
    while re.search(rf"\b{made}\b", taken):
        made += "_"
    return made
