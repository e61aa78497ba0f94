"""No trick, and nothing forged over the wire, earns a point for correctness, and each ends in a report."""

from pathlib import Path

import pytest

from gradekit.findings import Kind, Outcome, Status
from gradekit.report import record
from gradekit.sandbox import Limits
from tests.graded import graded
from tests.patience import peak_kilobytes

from .cheats import CHEATS, HEAD
from .forgeries import FORGERIES, Forgery

TWO = "contiguous_float32 or boundary_sizes"
"""Two checks of correctness are enough: who fools one fools the others."""


@pytest.mark.sample(32)
@pytest.mark.parametrize("name", CHEATS)
def test_a_trick_earns_nothing(tmp_path: Path, name: str) -> None:
    """Wrong results stay wrong, and the report is whole"""
    _earns_nothing(tmp_path, CHEATS[name], shrink=False)


@pytest.mark.usefixtures("usual_mends")
@pytest.mark.sample(2)
@pytest.mark.parametrize("name", CHEATS)
def test_a_trick_that_is_mended_earns_nothing(tmp_path: Path, name: str) -> None:
    """It runs again on smaller inputs and with small edits, and nothing that it does there counts"""
    _earns_nothing(tmp_path, CHEATS[name], shrink=True)


def _earns_nothing(tmp_path: Path, text: str, shrink: bool) -> None:
    report = graded("vector_add", text, tmp_path, profile="quick", keyword=TWO, shrink=shrink)
    record.validate(record.to_dict(report))
    assert report.status is not Status.FAULT, report.message
    correct = [check for check in report.checks if check.kind is Kind.CORRECTNESS]
    assert correct and [check.id for check in correct if check.earned or check.outcome is Outcome.FAULT] == []
    assert all(check.message for check in correct)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["submission.py"]


def test_what_the_tricks_begin_with_is_right(tmp_path: Path) -> None:
    """It is the trick that costs the points"""
    report = graded("vector_add", HEAD + "\nadd = right\n", tmp_path, profile="quick")
    correct = [check for check in report.checks if check.kind is Kind.CORRECTNESS]
    assert [check.id for check in correct if check.outcome is not Outcome.PASSED] == []


# --- whatever comes over the wire, at any time and in any amount, ends in a report, and earns nothing -----------------


MEMORY_KILOBYTES = 3 << 20

IMPATIENT = Limits(import_seconds=0.5, call_seconds=0.3, packages_seconds=0.3, total_seconds=1.0, more_seconds=0.25)
"""For those that make the grader wait: a call may take two seconds by the clock, and all together hardly more."""


LONG = ("a gigabyte", "a while without end")
"""An engine's budget ends the second, which tests/engine/test_budget tries with less; the slow tests try both."""


@pytest.mark.sample(12)
@pytest.mark.parametrize(
    "forgery", [pytest.param(one, id=one.name, marks=[pytest.mark.slow] if one.name in LONG else []) for one in FORGERIES]
)
def test_a_forged_answer_is_a_failure(tmp_path: Path, forgery: Forgery) -> None:
    """No fault of the grader, no crash, no hang, no memory over the cap"""
    before = peak_kilobytes()
    limits = IMPATIENT if forgery.waits else Limits()
    report = graded("vector_add", forgery.text, tmp_path, profile="quick", keyword="contiguous_float32", limits=limits)
    record.validate(record.to_dict(report))
    record.dumps(record.to_dict(report)).encode()
    (check,) = report.checks
    assert report.status is not Status.FAULT, report.message
    if not (forgery.harmless and check.outcome is Outcome.PASSED):
        assert (check.kind, check.outcome) == (Kind.CORRECTNESS, Outcome.FAILED), check.message
        assert check.earned == 0 and check.message and len(check.message) < 20_000
    assert peak_kilobytes() < max(MEMORY_KILOBYTES, before + 1)
