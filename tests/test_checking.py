"""From a path to a report: only a wrong command raises, and every other ending is a report."""

from pathlib import Path
from typing import Any

import pytest

from gradekit.assignment import UsageError
from gradekit.checking import check, exit_code, save_traceback
from gradekit.confine import Means
from gradekit.findings import Cause, Check, Kind, Outcome, Report, Status
from gradekit.request import GradingOptions, GradingRequest
from gradekit.sandbox import host
from tests.small import laid_out


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    laid_out(tmp_path, "softmax", "softmax", {})
    monkeypatch.setenv("GRADEKIT_ASSIGNMENTS", str(tmp_path / "assignments"))
    (tmp_path / "good.py").write_text("def softmax(x):\n    return x\n")
    return tmp_path


def grade_as(monkeypatch: pytest.MonkeyPatch, outcome: Report | Exception) -> list[tuple[Any, ...]]:
    """Put a grader in the plugin's place that ends with `outcome`; the list fills with what it was asked for."""
    calls: list[tuple[Any, ...]] = []

    def grade(request: GradingRequest, **watching: Any) -> Report:
        calls.append((request.assignment.id, request.path, request.options))
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setattr("gradekit.plugin.grade", grade)
    return calls


def report(*outcomes: Outcome, status: Status = Status.GRADED) -> Report:
    checks = tuple(
        Check(f"test_{i}", "T", Kind.MEMORY, outcome, 1.0 * (outcome is Outcome.PASSED), 1.0)
        for i, outcome in enumerate(outcomes)
    )
    return Report("softmax", status, {"path": "a.py", "sha256": ""}, checks, {}, 1.0)


def test_the_assignment_is_found_and_the_options_are_handed_on(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = grade_as(monkeypatch, report())
    assert check(course / "good.py", None, GradingOptions(profile="quick", seed=7)) == report()
    assert calls == [("softmax", course / "good.py", GradingOptions(profile="quick", seed=7))]


@pytest.mark.parametrize(("name", "id", "said"), [
    ("missing.py", None, "there is no file"),
    ("good.py", "sofmax", "did you mean softmax?"),
])
def test_a_wrong_command_raises(course: Path, name: str, id: str | None, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        check(course / name, id)
    assert said in str(caught.value)


def test_a_check_that_does_not_exist_is_a_wrong_command(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gradekit.plugin import NoSuchCheck

    grade_as(monkeypatch, NoSuchCheck("test_zzz", ["test_a"]))
    with pytest.raises(UsageError, match='no check matches "test_zzz"'):
        check(course / "good.py")


def test_where_submissions_are_isolated_too_little_nothing_is_run(
    course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = grade_as(monkeypatch, report())
    monkeypatch.setattr(host, "means", Means)
    with pytest.raises(UsageError, match="level 2 is required"):
        check(course / "good.py", None, GradingOptions(isolation=2))
    assert not calls and host.required == 0


def test_what_cannot_be_read_is_rejected_though_nobody_knows_what_it_is_for(course: Path) -> None:
    (course / "empty.py").write_text("")
    found = check(course / "empty.py")
    assert (found.status, found.cause, found.assignment) == (Status.REJECTED, Cause.UNREADABLE, "")
    assert found.message.endswith("is empty")
    assert exit_code(found) == 1


def test_an_error_of_the_graders_own_is_a_fault_with_its_details_kept(
    course: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    grade_as(monkeypatch, ZeroDivisionError("oh"))
    found = check(course / "good.py")
    assert (found.status, found.assignment, found.checks) == (Status.FAULT, "softmax", ())
    first, second = found.message.split("\n")
    assert first == "ZeroDivisionError: oh"
    path = second.removeprefix("The details are in ").partition(";")[0]
    assert "raise outcome" in Path(path).read_text()


def test_details_that_cannot_be_kept_are_no_second_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    assert save_traceback(ValueError("oh")).startswith("The details could not be written: [Errno 2] No such file")


@pytest.mark.parametrize(("found", "code"), [
    (report(), 0),
    (report(Outcome.PASSED, Outcome.PENDING), 0),
    (report(Outcome.PASSED, Outcome.FAILED), 1),
    (report(status=Status.REJECTED), 1),
    (report(status=Status.FAULT), 3),
    (report(Outcome.FAILED, Outcome.FAULT), 3),
])
def test_the_exit_code_says_what_the_report_says(found: Report, code: int) -> None:
    assert exit_code(found) == code
