"""What a check shows of proofs is what it claims."""

from __future__ import annotations

from pathlib import Path

from gradekit.assignment import get
from gradekit.findings import Outcome
from tests.graded import grade


def test_only_a_check_that_claims_clean_memory_shows_what_is_proved_of_memory() -> None:
    assignment = get("cross_entropy")
    path = Path(__file__).parents[1] / "course/right/cross_entropy/narrow_and_wide.py"
    report = grade(assignment, path, device="cpu", keyword="memory or second")
    assert [(check.id, "proofs" in check.details, check.outcome) for check in report.checks] == [
        ("test_memory", True, Outcome.PASSED),
        ("test_no_second_matrix", False, Outcome.PASSED),
    ]
