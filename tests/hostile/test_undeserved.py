"""Submissions that deserve less than they ask for, in every assignment: each names the checks that it must not pass.

undeserved/<id>.toml has them, as edits of a right submission or of one above them in the file (`base`, by default the file's, or the
solution; gradekit.course.edits says how an edit is written) or as `text` that follows the file's `head`, or its own:

    fail = "test_memory"                the checks; each must end as one of the
    outcomes = "failed pending"         by default failed; pending where a person has to look; passed for what is right beside it
    cause = "wrong-values"              theirs, where it matters
    says = ["one large number"]         what stands in their message, or in the hint
    unsaid = ["two mistakes"]           and what does not
    line = "tl.log(total)"              what stands in the line that they name
    origin = "M is "                    what is said of where their example came from
    options = { profile = "quick" }     of the grading, which by default neither shrinks nor diagnoses
    mended = true                       it is shrunk, diagnosed and mended as for students, and so told its cause
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gradekit.course.edits import edited
from gradekit.findings import Check, Outcome, Status
from gradekit.report import record
from tests import right
from tests.graded import graded

FOLDER = Path(__file__).parent / "undeserved"
LONG = (
    "a_lock_for_each_row", "a_lock_that_is_given_back_without_a_barrier", "a_copy_kept_for_an_address",
    "half_a_thousand_programs",
)  # fmt: skip
"""Left to the slow tests: programs that wait for each other or are many, and what fails by the memory of all calls alone."""


@dataclass(frozen=True)
class Undeserved:
    """A submission to `assignment`, and what its file says of it."""

    assignment: str
    name: str
    text: str
    table: Mapping[str, Any]

    def is_shown_by(self, check: Check) -> bool:
        """Whether a check says of it what it should."""
        said = f"{check.message} {check.details.get('hint') or (check.cause.hint if check.cause else '')}"
        return (
            check.outcome in self.table.get("outcomes", "failed").split()
            and self.table.get("cause", check.cause) == check.cause
            and all(words in said for words in self.table.get("says", ()))
            and not any(words in said for words in self.table.get("unsaid", ()))
            and self.table.get("line", "") in (check.source.text if check.source else "")
            and self.table.get("origin", "") in (check.counterexample or {}).get("origin", "")
        )


def all_of(path: Path) -> Iterator[Undeserved]:
    """Those of one file."""
    tables = tomllib.loads(path.read_text())
    head, usual = tables.pop("head", ""), tables.pop("base", f"solutions/{path.stem}/solution.py")
    texts: dict[str, str] = {}
    for name, table in tables.items():
        base = table.get("base", usual)
        texts[name] = table.get("head", head) + table["text"] if "text" in table else edited(texts.get(base) or right.text(base), table["edit"], base)
        yield Undeserved(path.stem, name, texts[name], table)


ALL = [one for path in sorted(FOLDER.glob("*.toml")) for one in all_of(path)]


def _parametrized(is_mended: bool) -> pytest.MarkDecorator:
    cases = [
        pytest.param(one, id=f"{one.assignment}/{one.name}", marks=[pytest.mark.slow] if one.name in LONG else [])
        for one in ALL
        if ("mended" in one.table) == is_mended
    ]
    return pytest.mark.parametrize("one", cases)


@pytest.mark.sample(1)
@_parametrized(is_mended=False)
def test_points_that_are_not_deserved_are_not_given(one: Undeserved, tmp_path: Path) -> None:
    _ends_as_it_says(one, tmp_path, shrink=False, diagnose=False)


@pytest.mark.usefixtures("usual_mends")
@pytest.mark.sample(1)
@_parametrized(is_mended=True)
def test_who_loses_points_is_told_the_cause(one: Undeserved, tmp_path: Path) -> None:
    _ends_as_it_says(one, tmp_path)


def _ends_as_it_says(one: Undeserved, folder: Path, **usual: bool) -> None:
    names = one.table["fail"].split()
    report = graded(one.assignment, one.text, folder, **{"keyword": " or ".join(names), **usual, **one.table.get("options", {})})
    record.validate(record.to_dict(report))
    assert report.status is Status.GRADED, report.message
    for name in names:
        cases = [check for check in report.checks if check.id.partition("[")[0] == name]
        decided = [check for check in cases if check.outcome is not Outcome.PASSED] or cases
        assert decided and all(map(one.is_shown_by, decided)), (name, report.checks)
