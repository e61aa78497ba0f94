"""Reads which mutants of a solution a person judged equivalent to it, and why: solutions/<id>/equivalent.toml.

    [columns_fit_into_32_bits]
    why = "There are at most 32768 columns, so that n * stride stays below 2**31."
    edits = ['''
    @@ softmax_kernel
    -    n = tl.arange(0, BLOCK_N)[None, :].to(tl.int64)
    +    n = tl.arange(0, BLOCK_N)[None, :]
    ''']

Each of the edits (gradekit.course.edits) makes one mutant of the solution; `gradekit verify --mutants` prints them in
this form. One that makes none, since the solution or the operators have changed, is stale.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradekit.course.edits import EditError, edited
from gradekit.schemas import read

FILE = "equivalent.toml"


class JudgedError(ValueError):
    """The file is written wrongly, or an edit in it does not fit the solution: one sentence with the entry's name."""


@dataclass(frozen=True)
class Judged:
    """A mutant that a person judged equivalent: the entry's `name`, `why`, and the mutant's `text`."""

    name: str
    why: str
    text: str


def judged(solution: Path) -> list[Judged]:
    """What stands in the file beside a solution; nothing where there is none.

    Raises:
        JudgedError: it is written wrongly, or an edit in it does not fit the solution.
    """
    path = solution.with_name(FILE)
    if not path.is_file():
        return []
    text = solution.read_text(encoding="utf-8")
    return [one for name, entry in read(path, JudgedError)[1].items() for one in _entry(path, name, entry, text)]


def _entry(path: Path, name: str, entry: Any, text: str) -> list[Judged]:
    is_table = isinstance(entry, dict) and entry.keys() == {"why", "edits"}
    if not is_table or not isinstance(entry["why"], str) or not isinstance(entry["edits"], list):
        raise JudgedError(f"{path}: [{name}] must have why, a sentence, and edits, a list")
    try:
        return [Judged(name, entry["why"], edited(text, edit, "solution.py")) for edit in entry["edits"]]
    except EditError as error:
        raise JudgedError(f"{path}: {name}: {error}") from None
