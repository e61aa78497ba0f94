"""Reads the wrong submissions that an assignment keeps: each makes one mistake, and says which check must find it.

docs/instructors.md describes their file; most are edits (gradekit.course.edits) of a right submission beside it.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradekit.assignment import Assignment, UsageError
from gradekit.causes import Cause
from gradekit.course.edits import EditError, edited
from gradekit.schemas import line_of, nearest, read

FILE = "mistakes.toml"

_KEYS = {"title", "expect", "base", "edit"}


class MistakeError(UsageError):
    """A mistake is described wrongly, or its edit does not fit: one sentence with the file and the mistake's name."""


@dataclass(frozen=True)
class Mistake:
    """A wrong submission: its `text`, and the `check` that must fail for `cause`: "" and None where nobody has said."""

    name: str
    title: str
    check: str
    cause: Cause | None
    text: str


def mistake(assignment: Assignment, name: str, tables: Mapping[str, dict[str, Any]] | None = None) -> Mistake:
    """The mistake of this name, by `tables` that were read. Raises MistakeError where it is wrong, or none."""
    tables = _tables_of(assignment) if tables is None else tables
    if name not in tables:
        raise MistakeError(f"{assignment.id} has no mistake {name}; it has {', '.join(sorted(tables)) or 'none'}")
    try:
        return _of_table(assignment, name, tables[name])
    except (MistakeError, EditError) as error:
        path = _path(assignment)
        line = line_of(path.read_text(encoding="utf-8"), (name,))
        raise MistakeError(f"{path}:{line}: {name}: {error}") from None


def bases(assignment: Assignment) -> list[Path]:
    """The right submissions beside the solution that are there to be edited: right_*.py (or .toml)."""
    return sorted(assignment.solutions.glob(f"right_*{assignment.suffix}")) if assignment.solutions else []


def _path(assignment: Assignment) -> Path:
    assert assignment.solutions is not None
    return assignment.solutions / FILE


def _tables_of(assignment: Assignment) -> dict[str, dict[str, Any]]:
    if assignment.solutions is None or not _path(assignment).is_file():
        return {}
    _, data = read(_path(assignment), MistakeError)
    base = data.pop("base", f"solution{assignment.suffix}")
    if wrong := [name for name, table in data.items() if not isinstance(table, dict)]:
        raise MistakeError(f"{_path(assignment)}: {wrong[0]} is {data[wrong[0]]!r}, but must be a table, [{wrong[0]}]")
    return {name: {"base": base} | table for name, table in data.items()}


def _of_table(assignment: Assignment, name: str, table: Mapping[str, Any]) -> Mistake:
    if table.keys() | {"expect", "edit"} != _KEYS or not all(isinstance(value, str) for value in table.values()):
        has = ", ".join(sorted(table))
        raise MistakeError(f"it must have the string title, and may have expect, base and edit; it has {has}")
    check, cause = _expected(table["expect"]) if "expect" in table else ("", None)
    base = _path(assignment).with_name(table["base"])
    if not base.is_file():
        raise MistakeError(f"there is no file {base.name} to edit")
    text = base.read_text(encoding="utf-8")
    text = edited(text, table["edit"], base.name) if "edit" in table else text
    return Mistake(name, table["title"], check, cause, _titled(text, table["title"], assignment))


def _titled(text: str, title: str, assignment: Assignment) -> str:
    """The text with the title for what it said of itself at the top: a docstring, or a comment."""
    if assignment.is_quiz:
        return f"# {title}\n" + re.sub(r"\A#[^\n]*\n", "", text)
    return f'"""{title}"""\n' + re.sub(r'\A"""(.*?)"""\n', "", text, flags=re.DOTALL)


def _expected(text: str) -> tuple[str, Cause]:
    match = re.fullmatch(r"(\w+) ([\w-]+)\s*", text)
    if match is None:
        raise MistakeError(f"a check and a cause are expected, as in `test_empty exception`, and not {text!r}")
    try:
        return match[1], Cause(match[2])
    except ValueError:
        raise MistakeError(f"there is no cause {match[2]} ({nearest(match[2], list(Cause))})") from None


def all_of(assignment: Assignment) -> Iterator[Mistake]:
    """Every mistake of an assignment. Raises MistakeError where one is described wrongly, or does not fit."""
    tables = _tables_of(assignment)
    return (mistake(assignment, name, tables) for name in sorted(tables))


def read_or_refused(assignment: Assignment) -> Iterator[tuple[str, Mistake | MistakeError]]:
    """By name, every mistake of an assignment, or why it cannot be read; by the file's, where that is not TOML."""
    try:
        tables = _tables_of(assignment)
    except MistakeError as error:
        yield FILE, error
        return
    for name in sorted(tables):
        try:
            yield name, mistake(assignment, name, tables)
        except MistakeError as error:
            yield name, error
