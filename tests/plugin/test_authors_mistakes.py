"""What an author got wrong is told with its place, and no student loses a point for it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradekit.assignment import Assignment, load
from gradekit.findings import Outcome
from tests.beside import beside
from tests.graded import grade
from tests.plugin.samples import RIGHT, TESTS

TEXTS = beside(__file__)

DOMAIN = TEXTS["domain"]
TAKE = TEXTS["take"]
SUBMISSION = TEXTS["submission"]


@pytest.fixture
def take(assignment: Callable[..., Assignment]) -> Callable[[str], Any]:
    """Grades a right submission of `take` under this domain."""
    made = assignment(TAKE)
    described = made.folder / "assignment.toml"
    described.write_text(described.read_text().replace("double", "take"))

    def graded(domain: str) -> Any:
        (made.folder / "domain.toml").write_text(domain)
        submission = made.folder.parent / "submission.py"
        submission.write_text(SUBMISSION)
        return grade(load(made.folder), submission)

    return graded


def test_values_outside_of_their_range_are_a_fault_that_names_the_tensor(take: Callable[[str], Any]) -> None:
    report = take(DOMAIN)
    assert [check.outcome for check in report.checks] == [Outcome.FAULT] * 2
    assert all('labels: its kind of values "integers" gives' in check.message for check in report.checks)


def test_values_within_their_range_are_drawn(take: Callable[[str], Any]) -> None:
    report = take(
        DOMAIN.replace('"0", "V - 1"', '"0", "0"')
        .replace('"integers"', '"zeros_of"')
        .replace("zeros_of", "chosen:cells:1:0")
    )
    assert [check.outcome for check in report.checks] == [Outcome.PASSED] * 2, [c.message for c in report.checks]


def test_values_that_fall_where_they_are_to_ascend_are_a_fault(take: Callable[[str], Any]) -> None:
    fallen = DOMAIN.replace('"V - 1"]', '"V - 1"], ascending = true').replace("integers", "chosen:cells:1:0;0;0;-1")
    report = take(fallen.replace('["0", "V - 1"]', '["-1", "V - 1"]'))
    assert all("values that decrease" in check.message for check in report.checks)
    assert {check.outcome for check in report.checks} == {Outcome.FAULT}


def test_an_exception_in_a_test_has_its_file_and_line(
    assignment: Callable[..., Assignment], submitted: Callable[[str], Path]
) -> None:
    line = next(n for n, text in enumerate(TESTS.splitlines(), 1) if "reference(twice" in text)
    made = assignment(TESTS.replace("reference(twice", "referense(twice"))
    check = grade(made, submitted(RIGHT)).checks[0]
    assert check.outcome is Outcome.FAULT
    assert check.message.endswith(f"name 'referense' is not defined (test_double.py, line {line})")


def test_a_misspelled_fixture_is_named(assignment: Callable[..., Assignment], submitted: Callable[[str], Path]) -> None:
    made = assignment(TESTS.replace("submission", "sub"))
    check = grade(made, submitted(RIGHT)).checks[0]
    assert check.outcome is Outcome.FAULT
    assert "the test takes 'sub', which is neither a fixture nor drawn (a check takes submission)" in check.message
