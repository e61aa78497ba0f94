"""Whatever comes over the wire, at any time and in any amount, ends in a report, and earns nothing unduly."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradekit.assignment import get
from gradekit.findings import Kind, Outcome, Status
from gradekit.report import record
from gradekit.sandbox import Limits
from tests.graded import grade
from tests.patience import peak_kilobytes
from tests.sampling import sampled

from .forgeries import FORGERIES, Forgery

MEMORY_KILOBYTES = 3 << 20

IMPATIENT = Limits(import_seconds=0.5, call_seconds=0.3, total_seconds=1.0, more_seconds=0.25)
"""For those that make the grader wait: a call may take two seconds by the clock, and all together hardly more."""


def graded(folder: Path, forgery: Forgery) -> record.Report:
    path = folder / "submission.py"
    path.write_text(forgery.text, encoding="utf-8")
    limits = IMPATIENT if forgery.waits else Limits()
    return grade(get("vector_add"), path, profile="quick", keyword="contiguous_float32", limits=limits)


LONG = ("a gigabyte", "a while without end")
"""An engine's budget ends the second, which tests/engine/test_budget tries with less."""


def _is_tried_often(number: int, forgery: Forgery) -> bool:
    return number % 2 == 0 and forgery.name not in LONG


@pytest.mark.parametrize("forgery", sampled(FORGERIES, lambda forgery: forgery.name, _is_tried_often))
def test_a_forged_answer_is_a_failure(tmp_path: Path, forgery: Forgery) -> None:
    """No fault of the grader, no crash, no hang, no memory over the cap"""
    before = peak_kilobytes()
    report = graded(tmp_path, forgery)
    record.validate(record.to_dict(report))
    record.dumps(record.to_dict(report)).encode()
    (check,) = report.checks
    assert report.status is not Status.FAULT, report.message
    if not (forgery.harmless and check.outcome is Outcome.PASSED):
        assert (check.kind, check.outcome) == (Kind.CORRECTNESS, Outcome.FAILED), check.message
        assert check.earned == 0 and check.message and len(check.message) < 20_000
    assert peak_kilobytes() < max(MEMORY_KILOBYTES, before + 1)
