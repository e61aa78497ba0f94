"""What looks odd and is honest is graded like anything else."""

from pathlib import Path

import pytest

from gradekit.findings import Kind, Outcome, Status
from tests.beside import beside
from tests.graded import graded

from .cheats import HEAD
from .test_cheats import TWO

CASES = beside(__file__)

ODDITIES = CASES["oddities"] | {
    "comments without end": "# " + "why " * 20_000 + "\n'''" + "long " * 20_000 + "'''\nadd = right"
}


@pytest.mark.parametrize("body", ODDITIES.values(), ids=ODDITIES)
def test_an_honest_submission_loses_nothing(tmp_path: Path, body: str) -> None:
    """It is graded normally, whatever else it does"""
    report = graded("vector_add", f"{HEAD}\n{body}\n", tmp_path, profile="quick", keyword=TWO)
    assert report.status is Status.GRADED, report.message
    correct = [check for check in report.checks if check.kind is Kind.CORRECTNESS]
    assert len(correct) == 2
    assert [(check.id, check.message) for check in correct if check.outcome is not Outcome.PASSED] == []
