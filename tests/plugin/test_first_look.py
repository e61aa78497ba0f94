"""What failed last time is looked at before its turn, and no record depends on it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from gradekit.assignment import Assignment
from gradekit.plugin.runner import grade
from gradekit.report.record import to_dict
from gradekit.request import GradingOptions, GradingRequest
from tests.plugin.samples import RIGHT, TRIPLES

Make = Callable[..., Assignment]


def _graded(assignment: Assignment, path: Path, first: tuple[str, ...]) -> tuple[Any, list[tuple[str, str]], list[str]]:
    """The record, what was heard early, and which checks had ended when it was first heard of one."""
    heard, ended, before = list[tuple[str, str]](), list[str](), list[str]()

    def early(title: str, message: str) -> None:
        if not heard:
            before.extend(ended)
        heard.append((title, message))

    request = GradingRequest(assignment, path, GradingOptions())
    watching: dict[str, Any] = {"on_evidence": lambda check, *more: ended.append(check.id)}
    report = grade(request, on_failing=early, first=first, **watching)
    return to_dict(replace(report, seconds=0.0)), heard, before


def test_a_check_that_fails_again_is_told_of_early_and_the_record_stays_the_same(
    assignment: Make, submitted: Callable[[str], Path]
) -> None:
    made, path = assignment(), submitted(TRIPLES)
    record, heard, before = _graded(made, path, ("test_doubles", "test_gone"))
    assert heard[0][0] == "Doubles every element"
    assert "is wrong, got" in heard[0][1]
    assert before == []
    assert record["checks"][0]["outcome"] == "failed"
    assert record == _graded(made, path, ())[0]


def test_a_failing_example_is_told_of_before_its_check_has_ended(assignment: Make, submitted: Callable[[str], Path]) -> None:
    _, heard, before = _graded(assignment(), submitted(TRIPLES), ())
    assert [title for title, _ in heard] == ["Doubles every element"]
    assert before == []


def test_a_check_that_passes_now_is_not_told_of(assignment: Make, submitted: Callable[[str], Path]) -> None:
    assert _graded(assignment(), submitted(RIGHT), ("test_doubles",))[1] == []
