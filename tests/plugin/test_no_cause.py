"""An error of the grader's own while it looks for a cause costs the cause, never a check's result."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import pytest

from gradekit.assignment import Assignment
from gradekit.plugin import check_results, check_run
from gradekit.plugin.runner import grade
from gradekit.repair.tutor import Tutor
from gradekit.request import GradingOptions, GradingRequest
from tests.plugin.samples import TRIPLES

STAGES: list[tuple[Any, str]] = [
    (check_run.CheckRun, "_trace_back"), (check_run.CheckRun, "_of_earlier_calls"), (check_run.CheckRun, "_mended"),
    (check_run, "diagnosis"), (check_run, "pictured"), (check_results, "blamed_line"), (check_results, "counterexample"),
    (Tutor, "at_the_end"),
]  # fmt: skip


@pytest.mark.parametrize("stages", [STAGES[:-1], STAGES[-1:]], ids=["of a check", "of all checks"])
def test_what_breaks_while_a_cause_is_looked_for_costs_no_result(
    stages: Sequence[tuple[Any, str]], assignment: Callable[..., Assignment], submitted: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broke = set()

    def broken(stage: str) -> NoReturn:
        broke.add(stage)
        raise IndexError("tuple index out of range")

    for owner, stage in stages:
        monkeypatch.setattr(owner, stage, lambda *args, stage=stage: broken(stage))
    report = grade(GradingRequest(assignment(), submitted(TRIPLES), GradingOptions(keyword="test_doubles")))
    (check,) = report.checks
    assert (report.status, check.outcome, check.earned) == ("graded", "failed", 0.0)
    assert "is wrong, got" in check.message
    said = r"The grader failed while it looked .* \(IndexError in test_no_cause\.py, line \d+\): results and points do not .*"
    assert len([note for note in report.notes if re.fullmatch(said, note)]) == 1
    assert ("diagnosis_error" in check.details) == (len(stages) > 1)
    assert broke == {stage for _, stage in stages}
