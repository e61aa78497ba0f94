"""Reads what a student handed in, a .py file, a notebook, a folder or an archive, as one Python source text. Never
imports it, never unpacks it, and follows no link out of it."""

import ast
import difflib
import functools
import hashlib
import io
import json
import re
import tokenize
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gradekit.findings import Cause, SourceLine
from gradekit.submission import archive, modules, notebook
from gradekit.submission.syntax import SourceError, blocks, parse

MAX_SOURCE_BYTES = 1 << 20  # the largest Python source that is read: a hundred times a long submission

MAX_NOTEBOOK_BYTES = 32 << 20  # the largest notebook: its outputs may hold pictures

MAX_BLOCKS = 100  # the deepest nesting of blocks at the top level: Python itself allows no more where they are indented


class SubmissionError(Exception):
    """The submission cannot be read: `message` says what to do about it, `line` (and its `text`) where it is wrong."""

    def __init__(self, message: str, source: SourceLine | None = None, cause: Cause = Cause.UNREADABLE) -> None:
        super().__init__(message)
        self.cause = cause
        self.message = message
        self.source = source
        self.line = source.line if source else None


class NoSuchSubmission(SubmissionError):
    """There is nothing at the path, or several files that could be meant: the command is wrong, not the code."""


@dataclass(frozen=True)
class Submission:
    """One Python source `text`, as `path` (the way the user wrote it) gave it, and `notes` of what was left out of it.
    In an archive, `path` goes on inside of it. `sha256` is of the file as read. `cells` are (number, first line) of a
    notebook's code cells, or (name, first line) of several files; empty for one .py file."""

    path: str
    text: str
    sha256: str
    notes: tuple[str, ...] = ()
    cells: tuple[tuple[int | str, int], ...] = field(default=(), repr=False)

    def line(self, number: int) -> SourceLine | None:
        """Line `number`, 1-based, of the text; None outside of it."""
        lines = self.text.split("\n")
        return SourceLine(number, lines[number - 1]) if 1 <= number <= len(lines) else None

    def place(self, number: int) -> str:
        """Where the student finds line `number`: "submission.py:14" or "cell 3, line 4"."""
        return place({"path": self.path, "cells": self.cells}, number)

    def names(self) -> tuple[str, ...]:
        """The names that the top level binds, in order: an entry may be `Attention.apply`, renamed."""
        return modules.names_of(self.text)

    def facts(self) -> dict[str, Any]:
        """What the report record says of the submission."""
        return {"path": self.path, "sha256": self.sha256, "cells": [list(cell) for cell in self.cells]}


def line_of(facts: Mapping[str, Any], number: int) -> str:
    """The same beside the file's name: "line 14", or "cell 3, line 4"."""
    return place(facts, number) if facts.get("cells") else f"line {number}"


def place(facts: Mapping[str, Any], number: int) -> str:
    """Where the student finds line `number` of the submission that `facts` (path, cells) describe."""
    before = [(cell, first) for cell, first in facts.get("cells", ()) if first <= number]
    if not before:
        return f"{Path(facts['path']).name}:{number}"
    cell, first = before[-1]
    return f"{cell}:{number - first + 1}" if isinstance(cell, str) else f"cell {cell}, line {number - first + 1}"


def read(path: Path, *, entry: str | None = None) -> Submission:
    """The submission at `path`; in a folder, the file that is meant (`entry` helps to find it, and in a notebook is
    kept). Raises NoSuchSubmission where there is no such file, or it is unclear which file of a folder is meant, and
    SubmissionError where the file cannot be read as Python; its cause is UNREADABLE or SYNTAX_ERROR."""
    file = locate(path, entry=entry)
    if archive.is_archive(file):
        return _from_archive(file, entry)
    return _from_bytes(file, with_modules(file), entry)


def with_modules(file: Path, place: Callable[[str], Path] | None = None) -> bytes:
    """The bytes of `file`, of a Python file with the modules that it imports from beside it, each where `place` says.
    Raises SubmissionError where it cannot be opened, or its files cannot be made one source."""
    return _merged(file, _bytes(file), lambda name: _own(file.parent, place(name) if place else file.parent / name))


def _merged(file: Path, data: bytes, read_module: modules.Read) -> bytes:
    if file.suffix.lower() != ".py" or b"import" not in data or len(data) > MAX_SOURCE_BYTES:
        return data
    try:
        text = data.decode()
        merged = modules.merged(file.name, text, read_module)
    except (UnicodeDecodeError, SyntaxError):  # said when the file itself is read
        return data
    except modules.ModuleError as error:
        raise SubmissionError(f"{file} cannot be graded: {error}") from None
    return data if merged is text else merged.encode()


def _own(folder: Path, file: Path) -> str | None:
    """The text of a Python file of the student's own in or below `folder`; None for a test, a link, what is no text."""
    linked = file.resolve() != folder.resolve() / file.relative_to(folder)
    if linked or not file.is_file() or file.name.startswith(("test_", "conftest.")):
        return None
    try:
        return _bytes(file)[:MAX_SOURCE_BYTES].decode().replace("\r\n", "\n")
    except UnicodeDecodeError:
        return None


def _from_bytes(file: Path, data: bytes, entry: str | None) -> Submission:
    if not _small_enough(file, data).strip():
        raise SubmissionError(f"{file} is empty")
    digest = hashlib.sha256(data).hexdigest()
    if file.suffix.lower() == ".ipynb" or _is_notebook(data):
        return _notebook(file, data, digest, entry)
    text = _decode(file, data)
    _check(file, text)
    return Submission(str(file), text, digest, cells=modules.parts(text))


def _from_archive(file: Path, entry: str | None) -> Submission:
    try:
        member = archive.read(file, lambda names: _meant(names, entry, functools.partial(_inside, file)), _limit)
    except archive.ArchiveError as error:
        raise SubmissionError(f"{file} cannot be graded: {error}") from None
    except OSError as error:
        raise SubmissionError(f"{file} cannot be opened: {error.strerror}") from None
    folder = Path(member.name).parent
    data = _merged(file / member.name, member.data, lambda name: _inside(file, str(folder / name)))
    found = _from_bytes(file / member.name, data, entry)
    taken = {str(folder / str(name)) for name, _ in found.cells}
    left_out = [name for name in member.left_out if name not in taken]
    notes = (f"Left out of the archive: {_some(left_out)}.",) if left_out else ()
    return replace(found, notes=notes + found.notes)


def _inside(file: Path, name: str) -> str | None:
    """The text of the Python file called `name` in an archive; None where there is none that may be read."""

    def choose(names: Sequence[str]) -> str:
        if name not in names or not name.endswith(".py"):
            raise archive.ArchiveError(f"there is no {name} in it")
        return name

    try:
        return archive.read(file, choose, _limit).data.decode().replace("\r\n", "\n")
    except (archive.ArchiveError, OSError, UnicodeDecodeError):
        return None


def _meant(names: Sequence[str], entry: str | None, text_of: modules.Read) -> str:
    """The name that is meant among those of an archive. Raises ArchiveError unless there is exactly one."""
    if found := _chosen(names, entry, lambda name: text_of(name) or ""):
        return found
    if not names:
        raise archive.ArchiveError("there is no .py file or notebook in it")
    raise archive.ArchiveError(f"it holds {_some(names)}: call the one that is meant submission.py")


def _chosen(names: Sequence[str], entry: str | None, text_of: Callable[[str], str]) -> str | None:
    """The file called submission, or like the entry; the only one; or the only one that defines the entry."""
    for stem in ("submission", entry):
        named = [name for name in names if Path(name).stem == stem]
        if len(named) == 1:
            return named[0]
    fitting = names if len(names) == 1 else [name for name in names[:20] if entry and _defines(text_of(name), entry)]
    return fitting[0] if len(fitting) == 1 else None


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")


# --- which file -------------------------------------------------------------------------------------------------------


def locate(path: Path, *, entry: str | None = None) -> Path:
    """The file that `path` means, itself or one within a folder. Raises NoSuchSubmission for none, or several."""
    if path.is_dir():
        return _within(path, entry)
    if not path.exists():
        raise NoSuchSubmission(f"there is no file {path}{_near(path)}")
    if path.suffix.lower() not in (".py", ".ipynb") and not archive.is_archive(path):
        kinds = "a .py file, an .ipynb notebook, a .zip or a .tar.gz"
        raise NoSuchSubmission(f"{path} is not {kinds}")
    if not path.is_file():
        raise NoSuchSubmission(f"{path} is not a regular file")
    return _stays(path)


def _stays(path: Path) -> Path:
    """Following a link out of the folder would show other people's files in a report."""
    if path.resolve().parent != path.parent.resolve():
        raise SubmissionError(f"{path} is a link that leads out of its folder: hand in the file itself")
    return path


def _within(folder: Path, entry: str | None) -> Path:
    names = [file.name for file in _candidates(folder)]
    begun = sorted({str(file.parent) for file in folder.glob("*/test_*.py")})
    if names and len(begun) > 1 and not entry:
        raise NoSuchSubmission(f"which do you mean: {_some([str(folder / names[0]), *begun])}? Name it: {begun[0]}")
    if found := _chosen(names, entry, lambda name: _text_of(folder / name)):
        return _stays(folder / found)
    if not names:
        there = f": name one of {', '.join(begun)}" if begun else ""
        raise NoSuchSubmission(f"there is no .py file or notebook in the folder {folder}{there}")
    raise NoSuchSubmission(f"which file do you mean in {folder}: {_some(names)}? Name it: {folder / names[0]}")


def defines(file: Path, entry: str) -> bool:
    """Whether a Python file seems to define `entry` at its top level: a hint which of several files is meant."""
    return _defines(_text_of(file), entry)


def _text_of(file: Path) -> str:
    return _bytes(file).decode(errors="replace") if file.suffix.lower() == ".py" else ""


def _defines(text: str, entry: str) -> bool:
    pattern = rf"(?m)^(?:def|class)\s+{re.escape(entry)}\b|^{re.escape(entry)}\s*="
    return re.search(pattern, text) is not None


def _candidates(folder: Path) -> list[Path]:
    files = sorted(file for pattern in ("*.py", "*.ipynb") for file in folder.glob(pattern) if file.is_file())
    return [f for f in files if not f.name.startswith((".", "test_", "conftest.", "replay_"))]


def _near(path: Path) -> str:
    if not path.parent.is_dir():
        return f": there is no folder {path.parent}"
    names = [file.name for file in (*_candidates(path.parent), *filter(Path.is_dir, path.parent.iterdir()))]
    near = difflib.get_close_matches(path.name, names, n=1)
    return f"; did you mean {path.parent / near[0]}?" if near else ""


# --- its bytes --------------------------------------------------------------------------------------------------------


def content(file: Path) -> bytes:
    """The file's bytes, or enough to see that it is too large: then, and where it cannot be opened, SubmissionError."""
    return _small_enough(file, _bytes(file))


def _small_enough(file: Path, data: bytes) -> bytes:
    if len(data) > _limit(file.name):
        raise SubmissionError(f"{file} is larger than {_limit(file.name) >> 20} MiB: hand in the code alone")
    return data


def _bytes(file: Path) -> bytes:
    try:
        with file.open("rb") as stream:
            return stream.read(_limit(file.name) + 1)
    except OSError as error:
        raise SubmissionError(f"{file} cannot be opened: {error.strerror}") from None


def _limit(name: str) -> int:
    return MAX_NOTEBOOK_BYTES if name.lower().endswith(".ipynb") else MAX_SOURCE_BYTES


def _decode(file: Path, data: bytes) -> str:
    """The text of a Python file: UTF-8, or what its first lines declare, as Python itself would read it."""
    if b"\0" in data:
        raise SubmissionError(f"{file} contains NUL bytes: is it a compiled file, or saved as UTF-16?")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")
        text.encode()  # some codecs make what no other can write again
        return text if encoding.startswith("utf-8") else _as_utf_8(text)
    except (SyntaxError, UnicodeError, LookupError) as error:
        number = _undecodable_line(data)
        where = f" (line {number})" if number and "unknown encoding" not in str(error) else f": {error}"
        raise SubmissionError(f"{file} is not UTF-8 text{where}: save it as UTF-8") from None


_COOKIE = re.compile(r"(?m)^([ \t\f]*#.*?coding[:=][ \t]*)[-\w.]+")


def _as_utf_8(text: str) -> str:
    """The text as it will be written again, with what its first two lines declare."""
    lines = text.split("\n", 2)
    return "\n".join([_COOKIE.sub(r"\1utf-8", line) for line in lines[:2]] + lines[2:])


def _undecodable_line(data: bytes) -> int | None:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        return data[: error.start].count(b"\n") + 1
    return None


def _check(file: Path, text: str) -> None:
    try:
        tree = parse(text)
    except SourceError as error:
        where = f"line {error.source.line} of {file.name}" if error.source else file.name
        message = f"Python cannot read {where}: {error.message}"
        raise SubmissionError(message, error.source, Cause.SYNTAX_ERROR) from None
    if _depth_of_blocks(tree) > MAX_BLOCKS:
        raise SubmissionError(f"{file} has blocks nested more than {MAX_BLOCKS} deep", cause=Cause.SYNTAX_ERROR)
    if all(_is_only_words(node) for node in tree.body):
        raise SubmissionError(f"{file} holds no code, only comments")


def _depth_of_blocks(tree: ast.Module) -> int:
    """How deep statements stand in statements; each elif is one deeper than the one before."""
    depth, level = 0, list(tree.body)
    while level:
        depth += 1
        level = [inner for node in level for block in blocks(node) for inner in block]
    return depth


def _is_only_words(node: ast.stmt) -> bool:
    return isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def _is_notebook(data: bytes) -> bool:
    """Whether a file that is called otherwise holds a notebook: JSON, with cells and the version of their format."""
    if not data.lstrip().startswith(b"{") or b'"nbformat"' not in data:
        return False
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return False
    return isinstance(content, dict) and "nbformat" in content


def _notebook(file: Path, data: bytes, digest: str, entry: str | None) -> Submission:
    try:
        book = notebook.read(data.decode("utf-8-sig"), entry=entry)
    except UnicodeDecodeError:
        raise SubmissionError(f"{file} is not UTF-8 text: is it a notebook?") from None
    except notebook.CellError as error:
        raise SubmissionError(f"Python cannot read {error}", error.source, Cause.SYNTAX_ERROR) from None
    except notebook.NotebookError as error:
        raise SubmissionError(f"{file} cannot be graded: {error}") from None
    if len(book.text) > MAX_SOURCE_BYTES:
        raise SubmissionError(f"the code in {file} is larger than {MAX_SOURCE_BYTES >> 20} MiB")
    cells = tuple((cell.number, cell.start) for cell in book.cells)
    return Submission(str(file), book.text, digest, book.notes, cells)
