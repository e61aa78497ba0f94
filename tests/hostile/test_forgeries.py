"""Whatever comes over the wire, at any time and in any amount, ends in a report, and earns nothing unduly."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from gradekit.assignment import get
from gradekit.findings import Kind, Outcome, Status
from gradekit.report import record
from tests.graded import grade

from .forgeries import FORGERIES, Forgery

MEMORY_KILOBYTES = 3 << 20


def graded(folder: Path, forgery: Forgery) -> record.Report:
    path = folder / "submission.py"
    path.write_text(forgery.text, encoding="utf-8")
    return grade(get("vector_add"), path, profile="quick", keyword="contiguous_float32")


@pytest.mark.parametrize("forgery", FORGERIES, ids=lambda forgery: forgery.name)
def test_a_forged_answer_is_a_failure(tmp_path: Path, forgery: Forgery) -> None:
    """No fault of the grader, no crash, no hang, no memory over the cap"""
    report = graded(tmp_path, forgery)
    record.validate(record.to_dict(report))
    record.dumps(record.to_dict(report)).encode()
    (check,) = report.checks
    assert report.status is not Status.FAULT, report.message
    if not (forgery.harmless and check.outcome is Outcome.PASSED):
        assert (check.kind, check.outcome) == (Kind.CORRECTNESS, Outcome.FAILED), check.message
        assert check.earned == 0 and check.message and len(check.message) < 20_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < MEMORY_KILOBYTES
