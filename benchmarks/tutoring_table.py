"""What a report has said of each mistake of the corpora: tests/repair/table.csv, and what is worse or better by now.

One row for each mistake: the verdict (see tests/repair/corpora.py), whether the line is right, the line that is blamed,
the cause, the CPU seconds of the search for a mend and of the whole report, and whether the one mistake is told as two.
Where a row is worse than it once was, `why`
has the sentence that says why that was accepted.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from tests.repair.corpora import Verdict

TABLE = Path(__file__).parents[1] / "tests" / "repair" / "table.csv"

_WORTH = {Verdict.NAMED: 2, Verdict.SYMPTOM: 1, Verdict.SILENT: 0, Verdict.PASSES: 0, Verdict.WRONG: -1}
"""What a verdict is worth to a student: to be told something else is worse than to be told nothing."""


@dataclass(frozen=True)
class Row:
    """What a report said of one mistake; `at` is the line that it blames, 0 where it blames none."""

    assignment: str
    name: str
    verdict: Verdict
    line: bool
    at: int
    cause: str
    mending: float
    whole: float
    two: bool = False
    why: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """What tells the mistake from others."""
        return self.assignment, self.name

    def is_worse_than(self, before: Row) -> bool:
        """Whether a student is helped less than before; seconds, which no machine shares with another, do not count."""
        return (_WORTH[self.verdict], self.line, before.two) < (_WORTH[before.verdict], before.line, self.two)


def read(path: Path = TABLE) -> dict[tuple[str, str], Row]:
    """The rows of a table, by their mistakes; none where there is no such file."""
    if not path.is_file():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        rows = [_row(dict(fields)) for fields in csv.DictReader(file)]
    return {row.key: row for row in rows}


def _row(of: dict[str, str]) -> Row:
    numbers = {"at": int(of["at"]), "mending": float(of["mending"]), "whole": float(of["whole"])}
    given = (
        of | {"verdict": Verdict(of["verdict"]), "line": of["line"] == "right", "two": of.get("two") == "two"} | numbers
    )
    return Row(**given)  # type: ignore[arg-type]


def write(rows: Iterable[Row], path: Path = TABLE) -> None:
    """Puts rows into a table, in the order of their mistakes."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)], lineterminator="\n")
        writer.writeheader()
        for row in sorted(rows, key=lambda row: row.key):
            writer.writerow(
                asdict(row)
                | {
                    "line": "right" if row.line else "other",
                    "verdict": str(row.verdict),
                    "two": "two" if row.two else "",
                }
            )


def compared(found: Sequence[Row], before: dict[tuple[str, str], Row]) -> tuple[list[str], list[str]]:
    """What is worse and what is better than in a table, one line for each mistake."""
    known = [(row, before[row.key]) for row in found if row.key in before]
    worse = [_changed(row, old) for row, old in known if row.is_worse_than(old)]
    return worse, [_changed(row, old) for row, old in known if old.is_worse_than(row)]


def updated(found: Iterable[Row], before: dict[tuple[str, str], Row], why: str) -> list[Row]:
    """A table with new rows; those that are worse have the sentence `why`, and others keep theirs until they are better.

    Raises:
        ValueError: a row is worse, and no sentence says why.
    """
    rows = dict(before)
    for row in found:
        old = before.get(row.key)
        if old is not None and row.is_worse_than(old) and not why:
            raise ValueError(f"{_changed(row, old)}: say why with --why")
        kept = "" if old is None or old.is_worse_than(row) else why if row.is_worse_than(old) else old.why
        rows[row.key] = replace(row, why=kept)
    return list(rows.values())


def _changed(row: Row, old: Row) -> str:
    return f"{row.assignment}/{row.name}: {_shown(old)} -> {_shown(row)}"


def _shown(row: Row) -> str:
    two = ", told as two" if row.two else ""
    return f"{row.verdict}, {'line right' if row.line else 'other line'} [{row.at}]{two}"
