"""Turns a Jupyter notebook into one Python source: its definitions, at line numbers that lead back to their cells.

A notebook is a lab book: beside the kernels stand experiments, plots and benchmarks, which must not run when it is
graded. Kept are imports, functions, classes, and the assignments that these need; everything else becomes blank lines,
and is named in a note. Nothing is ever imported or run.

Cells are code cells, counted from 1 as Jupyter counts them when a notebook runs from top to bottom.
"""

import ast
import json
import logging
import re
import symtable
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from gradekit.findings import SourceLine
from gradekit.submission.syntax import SourceError, blocks, first_line, parse

_PYTHON_CELL_MAGIC = re.compile(r"%%(time|capture|prun|memit|mprun|gradekit|writefile\s+\S+\.py)\b")
_MAGIC_LINE = re.compile(r"\s*([%!]|\?{1,2}\w|[\w.\[\]]+\?{1,2}\s*$|[\w, ]+=\s*[%!])")
_DEFINES = re.compile(r"(?m)^\s*(def|class|import|from|async def)\s+\w|^\s*@")
_HEADER = 1  # the source opens with one line of our own, to which `from __future__` imports move


MOST_PARTS = 1_000_000  # lists and objects in the file: each is a few bytes of it, and a hundred of memory

MOST_CODE, MOST_STATEMENTS = 1 << 20, 3000
"""Characters and top-level statements of all code cells together; those of a long lab are 30,000 and 300."""


class NotebookError(ValueError):
    """The file is not a notebook that can be graded: one sentence for the student."""


@dataclass(frozen=True)
class Cell:
    """A code cell: its `number`, its `text`, and the line of the whole source at which it starts."""

    number: int
    text: str
    start: int = 0


@dataclass(frozen=True)
class Notebook:
    """The kept definitions as one source `text`, the cells they came from, and notes of what was left out."""

    text: str
    cells: tuple[Cell, ...]
    notes: tuple[str, ...]


class CellError(NotebookError):
    """A cell that defines something cannot be read: the message names it; `source` is the line, counted in its cell."""

    def __init__(self, message: str, source: SourceLine | None) -> None:
        super().__init__(message)
        self.source = source


def read(data: str, *, entry: str | None = None) -> Notebook:
    """The definitions of the notebook whose JSON is `data`; what `entry` is assigned from is kept too. Raises
    NotebookError where it is not a notebook or not Python, or nothing in it defines a function."""
    try:
        return _read(_number(_code_cells(data)), entry)
    except RecursionError:
        raise NotebookError("its code is nested too deeply for Python to read") from None


def _read(cells: list[Cell], entry: str | None) -> Notebook:
    # A cell is parsed again for each of its lines that is a magic: so many characters in total.
    most = 8 * MOST_CODE // (sum(len(cell.text) for cell in cells) + 1)
    statements = [statement for cell in cells for statement in _statements(cell, most)]
    if len(statements) > MOST_STATEMENTS:
        raise NotebookError(f"its code has more than {MOST_STATEMENTS} statements")
    kept = _kept(statements, entry)
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    if not any(isinstance(node, functions) for statement in kept for node in ast.walk(statement.node)):
        raise NotebookError("no code cell in it defines a function")
    return Notebook(_assemble(cells, kept), tuple(cells), tuple(_notes(cells, statements, kept)))


# --- the file: JSON to cells ------------------------------------------------------------------------------------------


def _code_cells(data: str) -> list[str]:
    try:
        notebook = _load(data)
        kernel, info = notebook.metadata.get("kernelspec", {}), notebook.metadata.get("language_info", {})
        language = str(kernel.get("language") or info.get("name") or "python")
        texts = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    except NotebookError:
        raise
    except Exception as error:  # noqa: BLE001  # nbformat raises whatever the malformed data leads it to
        raise NotebookError(f"it is not a well-formed notebook ({first_line(error)})") from None
    if "python" not in language.lower():
        raise NotebookError(f"its language is {language}, not Python")
    if not all(isinstance(text, str) for text in texts):
        raise NotebookError("it is not a well-formed notebook (a cell's source is not text)")
    if not any(text.strip() for text in texts):
        raise NotebookError("it has no code cells with code in them")
    if sum(map(len, texts)) > MOST_CODE:
        raise NotebookError(f"its code is larger than {MOST_CODE >> 20} MiB")
    return [text.replace("\r\n", "\n").replace("\r", "\n") for text in texts]


def _load(data: str) -> Any:
    """The notebook without its outputs: they are not graded, and may hold anything."""
    import nbformat  # here alone: it takes longer to import than the rest of gradekit's command line

    if data.count("[") + data.count("{") > MOST_PARTS:
        raise NotebookError("it is too large to be read")
    data = json.dumps(_without_outputs(json.loads(data)))
    logging.getLogger("traitlets").addHandler(logging.NullHandler())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return nbformat.reads(data, as_version=4)


def _without_outputs(book: Any) -> Any:
    """The notebook's JSON (format 4, or 3 with its worksheets) with every cell's outputs emptied."""
    for holder in [book, *book.get("worksheets", [])]:
        for cell in holder.get("cells", []):
            if "outputs" in cell:
                cell["outputs"] = []
    return book


def _number(texts: Sequence[str]) -> list[Cell]:
    cells, start = [], _HEADER + 1
    for number, text in enumerate(texts, 1):
        cells.append(Cell(number, text, start))
        start += text.count("\n") + 1
    return cells


# --- one cell: text to statements -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Statement:
    """A top-level statement of a cell, and the module-level names that it binds, needs and changes in place."""

    cell: Cell
    node: ast.stmt
    lines: tuple[str, ...]  # its source, without what else stands on its first and last line
    first: int  # its first line in the cell, 1-based, decorators included
    last: int
    binds: frozenset[str]
    needs: frozenset[str]
    changes: frozenset[str]


def _statements(cell: Cell, most: int) -> list[_Statement]:
    code = code_of(cell, most)
    lines = code.split("\n")
    nodes = ast.parse(code).body if code.strip() else []
    return [_statement(cell, node, _lines_of(node, nodes, lines)) for node in nodes]


def code_of(cell: Cell, most: int = 100) -> str:
    """The cell's code with (at `most` so many) magics replaced by `pass`; empty where the whole cell is another
    language, or broken. Raises CellError where a cell that defines something is not valid Python."""
    lines = cell.text.split("\n")
    if cell.text.lstrip().startswith("%%"):
        if not _PYTHON_CELL_MAGIC.match(cell.text.lstrip()):
            return ""
        lines[next(i for i, line in enumerate(lines) if line.strip())] = ""
    for _ in range(min(len(lines), most) + 1):
        try:
            parse("\n".join(lines))
            return "\n".join(lines)
        except SourceError as error:
            if not _blank_magic(lines, error):
                return _broken(cell, error)
    raise CellError(f"cell {cell.number}: it has too many magics", None)


def _blank_magic(lines: list[str], error: SourceError) -> bool:
    """Replaces the line of the error, if it is a magic, with its continuations; says whether it did."""
    index = error.source.line - 1 if error.source else 0
    if not _MAGIC_LINE.match(lines[index]):
        return False
    continued = lines[index].endswith("\\")
    lines[index] = lines[index][: len(lines[index]) - len(lines[index].lstrip())] + "pass"
    while continued and (index := index + 1) < len(lines):
        continued, lines[index] = lines[index].endswith("\\"), ""
    return True


def _broken(cell: Cell, error: SourceError) -> str:
    """An experiment that is not valid Python is left out; a definition that is not is the student's to mend."""
    if not _DEFINES.search(cell.text):
        return ""
    line = error.source.line if error.source else 1
    raise CellError(f"cell {cell.number}, line {line}: {error.message}", error.source)


def _lines_of(node: ast.stmt, nodes: Sequence[ast.stmt], lines: Sequence[str]) -> tuple[str, ...]:
    """The node's source lines: whole where it stands alone on them, cut to its columns where it shares one."""
    first, last = _first(node), node.end_lineno or node.lineno
    own = list(lines[first - 1 : last])
    if any(other is not node and _first(other) == last for other in nodes):
        own[-1] = _cut(own[-1], 0, node.end_col_offset)
    if any(other is not node and other.end_lineno == first for other in nodes):
        own[0] = _cut(own[0], node.col_offset, None)
    return tuple(own)


def _cut(line: str, start: int, end: int | None) -> str:
    return line.encode()[start:end].decode()  # ast counts columns in UTF-8 bytes


def _first(node: ast.stmt) -> int:
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _statement(cell: Cell, node: ast.stmt, lines: tuple[str, ...]) -> _Statement:
    table, last = symtable.symtable("\n".join(lines), "cell", "exec"), node.end_lineno or node.lineno
    binds = frozenset(s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported())
    needs, changes = frozenset(_globals(table)), frozenset(_changed(node))
    return _Statement(cell, node, lines, _first(node), last, binds, needs, changes)


def _globals(table: symtable.SymbolTable) -> Iterable[str]:
    top = table.get_type() == "module"
    yield from (s.get_name() for s in table.get_symbols() if s.is_global() or (top and s.is_referenced()))
    for child in table.get_children():
        yield from _globals(child)


def _changed(node: ast.stmt) -> Iterable[str]:
    """Names whose object the statement changes in place: `configs.append(...)`, `Attention.scale = 2`."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        targets = [node.value.func]
    elif isinstance(node, ast.Assign):
        targets = list(node.targets)
    return {_root(t) for t in targets if isinstance(t, (ast.Attribute, ast.Subscript))} - {""}


def _root(node: ast.expr) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


# --- which statements are kept ----------------------------------------------------------------------------------------

_DEFINITIONS = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _kept(statements: Sequence[_Statement], entry: str | None) -> list[_Statement]:
    """Definitions, then whatever they need, until nothing is missing that the notebook has."""
    kept = {i for i, statement in enumerate(statements) if _is_definition(statement.node)}
    while True:
        needed = {name for i in kept for name in statements[i].needs} | {entry}
        bound = [(statements[i].node, statements[i].binds) for i in kept]
        defined = {name for node, names in bound if not isinstance(node, _DEFINITIONS[:2]) for name in names}
        assigned = {name for node, names in bound if isinstance(node, (ast.Assign, ast.AnnAssign)) for name in names}
        more = {i for i, s in enumerate(statements) if _is_needed(s, needed, defined, assigned)} - kept
        if not more:
            return [statements[i] for i in sorted(kept)]
        kept |= more


def _is_definition(node: ast.stmt) -> bool:
    if (inner := list(_inside(node))) and not _is_main_guard(node):
        harmless = (*_DEFINITIONS, ast.Pass, ast.Assign, ast.AnnAssign)
        return any(isinstance(n, _DEFINITIONS) for n in inner) and all(isinstance(n, harmless) for n in inner)
    return isinstance(node, _DEFINITIONS)


def _inside(node: ast.stmt) -> Iterable[ast.stmt]:
    for statement in (statement for block in blocks(node) for statement in block):
        yield from [*_inside(statement)] or (statement,)


def _is_main_guard(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "__name__" in {n.id for n in ast.walk(node.test) if isinstance(n, ast.Name)}


def _is_needed(statement: _Statement, needed: set[str | None], defined: set[str], assigned: set[str]) -> bool:
    node = statement.node
    if _is_main_guard(node) or isinstance(node, (ast.For, ast.While, ast.AsyncFor)):
        return False
    if isinstance(node, ast.Expr):  # of calls, only those that change a value: kernel.warmup(...) is an experiment
        return bool(statement.changes & needed & assigned)
    return bool(statement.binds & needed or statement.changes & defined) or _is_alias(node, defined)


def _is_alias(node: ast.stmt, defined: set[str]) -> bool:
    """`softmax = Softmax.apply`, `gelu = lambda x: ...`: a definition in the form of an assignment."""
    if not isinstance(node, ast.Assign) or not all(isinstance(target, ast.Name) for target in node.targets):
        return False
    return isinstance(node.value, ast.Lambda) or _root(node.value) in defined


# --- the source that is left ------------------------------------------------------------------------------------------


def _assemble(cells: Sequence[Cell], kept: Iterable[_Statement]) -> str:
    """One source with every kept statement at its own line, and blank lines elsewhere."""
    last = cells[-1]
    lines = [""] * (last.start + last.text.count("\n"))
    for statement in kept:
        future = isinstance(statement.node, ast.ImportFrom) and statement.node.module == "__future__"
        start = 1 if future else statement.cell.start + statement.first - 1
        for index, text in enumerate(statement.lines, start - 1):
            lines[index] = f"{lines[index]}; {text}" if lines[index] else text
    return "\n".join(lines) + "\n"


def _notes(cells: Sequence[Cell], statements: Sequence[_Statement], kept: Sequence[_Statement]) -> Iterable[str]:
    used = {statement.cell.number for statement in kept}
    unused = [cell.number for cell in cells if cell.number not in used and cell.text.strip()]
    if unused:
        left = f"cell{'s' * (len(unused) > 1)} {_and([*map(str, unused)])}"
        yield f"Left out {left}: no definitions there."
    for cell in cells:
        dropped = [s for s in statements if s.cell is cell and s not in kept]
        if cell.number in used and dropped:
            yield f"Left out of cell {cell.number}: {_lines([(s.first, s.last) for s in dropped])}."


def _lines(spans: Sequence[tuple[int, int]]) -> str:
    lines = sorted({line for first, last in spans for line in range(first, last + 1)})
    runs = [[line for _, line in run] for _, run in groupby(enumerate(lines), lambda placed: placed[1] - placed[0])]
    words = [f"{run[0]} to {run[-1]}" if len(run) > 1 else str(run[0]) for run in runs]
    return f"line{'s' * (len(lines) > 1)} {_and(words)}"


def _and(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
