"""No trick earns a point for correctness, and each ends in a report that says what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradekit.assignment import get
from gradekit.findings import Kind, Outcome, Status
from gradekit.report import record
from tests.graded import grade
from tests.sampling import one_in, sampled

from .cheats import CHEATS, HEAD, Cheat

TWO = "contiguous_float32 or boundary_sizes"
"""Two checks of correctness are enough: who fools one fools the others."""


def write(folder: Path, text: str) -> Path:
    path = folder / "submission.py"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("cheat", CHEATS, ids=lambda cheat: cheat.name)
def test_a_trick_earns_nothing(tmp_path: Path, cheat: Cheat) -> None:
    """Wrong results stay wrong, and the report is whole"""
    _earns_nothing(tmp_path, cheat)


@pytest.mark.usefixtures("usual_mends")
@pytest.mark.parametrize("cheat", sampled(CHEATS, lambda cheat: cheat.name, one_in(32)))
def test_a_trick_that_is_mended_earns_nothing(tmp_path: Path, cheat: Cheat) -> None:
    """Its text runs again with small edits, and nothing that it does there counts"""
    _earns_nothing(tmp_path, cheat)


def _earns_nothing(tmp_path: Path, cheat: Cheat) -> None:
    report = grade(get("vector_add"), write(tmp_path, cheat.text), profile="quick", keyword=TWO)
    record.validate(record.to_dict(report))
    assert report.status is not Status.FAULT, report.message
    correct = [check for check in report.checks if check.kind is Kind.CORRECTNESS]
    assert correct and [check.id for check in correct if check.earned or check.outcome is Outcome.FAULT] == []
    assert all(check.message for check in correct)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["submission.py"]


def test_what_the_tricks_begin_with_is_right(tmp_path: Path) -> None:
    """It is the trick that costs the points"""
    report = grade(get("vector_add"), write(tmp_path, HEAD + "\nadd = right\n"), profile="quick")
    correct = [check for check in report.checks if check.kind is Kind.CORRECTNESS]
    assert [check.id for check in correct if check.outcome is not Outcome.PASSED] == []
