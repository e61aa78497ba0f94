"""Submissions that deserve less than they ask for, in every assignment: each names the checks that it must not pass.

undeserved/<id>.toml has them, as edits of a right submission (`base`, by default the file's, or the solution;
gradekit.course.edits says how an edit is written) or as `text` that follows the file's `head`. `fail` are the checks; each must end as one of the
`outcomes`: failed, or pending where a person has to look.
"""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gradekit.course.edits import edited
from gradekit.findings import Outcome, Status
from gradekit.report import record
from tests import right
from tests.graded import graded

FOLDER = Path(__file__).parent / "undeserved"
SAMPLE = 12
"""One of so many is tried in the fast suite."""
LONG = ("a_lock_for_each_row", "a_lock_that_is_given_back_without_a_barrier", "a_copy_kept_for_an_address")
"""Not among them: programs that wait for each other, and what fails by the memory of all calls alone."""


@dataclass(frozen=True)
class Undeserved:
    """A submission to `assignment` that must not pass the checks `fail`."""

    assignment: str
    name: str
    text: str
    fail: tuple[str, ...]
    outcomes: frozenset[Outcome] = frozenset({Outcome.FAILED})


def all_of(path: Path) -> Iterator[Undeserved]:
    """Those of one file."""
    tables = tomllib.loads(path.read_text())
    head, usual = tables.pop("head", ""), tables.pop("base", f"solutions/{path.stem}/solution.py")
    for name, table in tables.items():
        base = Path(table.get("base", usual))
        text = head + table["text"] if "text" in table else edited(right.text(base), table["edit"], base.name)
        outcomes = frozenset(Outcome(word) for word in table.get("outcomes", "failed").split())
        yield Undeserved(path.stem, name, text, tuple(table["fail"].split()), outcomes)


ALL = [one for path in sorted(FOLDER.glob("*.toml")) for one in all_of(path)]
TRIED = [
    pytest.param(one, id=f"{one.assignment}-{one.name}", marks=[] if number % SAMPLE == 0 and one.name not in LONG else [pytest.mark.slow])
    for number, one in enumerate(ALL)
]


@pytest.mark.parametrize("one", TRIED)
def test_points_that_are_not_deserved_are_not_given(one: Undeserved, tmp_path: Path) -> None:
    report = graded(one.assignment, one.text, tmp_path, keyword=" or ".join(one.fail), shrink=False, diagnose=False)
    record.validate(record.to_dict(report))
    assert report.status is Status.GRADED, report.message
    by_name: dict[str, set[Outcome]] = {}
    for check in report.checks:
        by_name.setdefault(check.id.partition("[")[0], set()).add(check.outcome)
    for name in one.fail:
        without_full_marks = by_name.get(name, set()) - {Outcome.PASSED}
        assert without_full_marks and without_full_marks <= one.outcomes, (name, report.checks)
