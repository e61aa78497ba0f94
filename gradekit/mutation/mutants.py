"""Mutants of a submission: each is its text after one small edit, the same list for the same text. And which of them a
person judged equivalent to a solution, and why: solutions/<id>/equivalent.toml, as docs/instructors.md describes it.

Each edit there makes one mutant of the solution; one that makes none, since the solution has changed, say, is stale.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from gradekit.assignment import UsageError
from gradekit.course.edits import EditError, edited
from gradekit.mutation.operators import OPERATORS, Operator
from gradekit.schemas import read
from gradekit.submission.parsed_source import ParsedSource, meaning


@dataclass(frozen=True)
class Mutant:
    """The whole `text` after one edit in `line`; `says` tells the edit, `operator` its kind, and what would show it."""

    operator: Operator
    line: int
    says: str
    text: str

    def __str__(self) -> str:
        return f"line {self.line}, {self.operator.name}: {self.says}"


def mutants(text: str) -> list[Mutant]:
    """All mutants of a text, by operator, then line, each of another meaning. Raises SyntaxError if it is no Python."""
    found: dict[str, Mutant] = {}
    source, own = ParsedSource(text), meaning(text)
    for operator in OPERATORS.values():
        for edit in operator.find(source):
            changed = source.after(edit)
            same = meaning(changed)
            if same != own and same not in found and source.stays_python(edit):
                found[same] = Mutant(operator, source.line(edit.start), edit.says, changed)
    return list(found.values())


def spread(found: Sequence[Mutant], most: int) -> list[Mutant]:
    """At most `most` of them, of every operator about as many, and each operator's from all over the text."""
    by_operator: dict[str, list[Mutant]] = {}
    for mutant in found:
        by_operator.setdefault(mutant.operator.name, []).append(mutant)
    turns = zip_longest(*(_scattered(group) for group in by_operator.values()))
    chosen = {id(m) for m in [mutant for turn in turns for mutant in turn if mutant is not None][:most]}
    return [mutant for mutant in found if id(mutant) in chosen]


def _scattered(group: Sequence[Mutant]) -> Iterable[Mutant]:
    """The same in an order of which every beginning is spread over the whole: by the reversed bits of the index."""
    bits = max(1, (len(group) - 1).bit_length())
    return [group[i] for i in sorted(range(len(group)), key=lambda i: int(f"{i:0{bits}b}"[::-1], 2))]


# --- those that a person judged ---------------------------------------------------------------------------------------

FILE = "equivalent.toml"


@dataclass(frozen=True)
class Judged:
    """A mutant that a person judged equivalent: the entry's `name`, `why`, and the mutant's `text`."""

    name: str
    why: str
    text: str


def judged(solution: Path) -> list[Judged]:
    """What stands in the file beside a solution; nothing where there is none. Raises UsageError where it is written
    wrongly, or an edit in it does not fit the solution."""
    path = solution.with_name(FILE)
    if not path.is_file():
        return []
    text = solution.read_text(encoding="utf-8")
    return [one for name, entry in read(path, UsageError)[1].items() for one in _entry(path, name, entry, text)]


def _entry(path: Path, name: str, entry: Any, text: str) -> list[Judged]:
    is_table = isinstance(entry, dict) and entry.keys() == {"why", "edits"}
    if not is_table or not isinstance(entry["why"], str) or not isinstance(entry["edits"], list):
        raise UsageError(f"{path}: [{name}] must have why, a sentence, and edits, a list")
    try:
        return [Judged(name, entry["why"], edited(text, edit, "solution.py")) for edit in entry["edits"]]
    except EditError as error:
        raise UsageError(f"{path}: {name}: {error}") from None
