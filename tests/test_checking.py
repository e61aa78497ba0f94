"""From a path to a report: only a wrong command raises, and every other ending is a report."""

import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from gradekit.assignment import Assignment, UsageError
from gradekit.checking import check, exit_code, save_traceback
from gradekit.confine import Means
from gradekit.findings import Cause, Check, Kind, Outcome, Report, Status
from gradekit.plugin.profiles import PROFILES
from gradekit.plugin.run_state import GradingRun
from gradekit.request import PROFILE_NAMES, GradingOptions, GradingRequest
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


# --- A request is one value -------------------------------------------------------------------------------------------


UNUSUAL: dict[str, Any] = {
    "keyword": "dtype", "kind": "memory", "seed": 0, "secret_seed": 5, "inputs": "{}", "profile": "quick",
    "hidden": True, "device": "cpu",
    "trivial": "zeros", "shrink": False, "diagnose": False, "isolation": 0, "stop": True, "jobs": 3,
}  # fmt: skip


def test_every_option_survives_a_journey_as_json() -> None:
    options = GradingOptions(**UNUSUAL)
    assert set(UNUSUAL) == {field.name for field in fields(GradingOptions)}, "give the new option a value here"
    assert GradingOptions(**json.loads(json.dumps(options.to_json()))) == options
    assert options.to_json() == UNUSUAL and GradingOptions().to_json() == {}


@pytest.mark.parametrize("wrong", [{"profile": "slow"}, {"trivial": "ones"}, {"kind": "style"}])
def test_an_option_that_does_not_exist_is_refused_when_it_is_made(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"no {next(iter(wrong))} '{next(iter(wrong.values()))}'; there are"):
        GradingOptions(**wrong)


def test_every_profile_that_can_be_asked_for_exists() -> None:
    assert tuple(PROFILES) == PROFILE_NAMES


@pytest.fixture
def double(tmp_path: Path) -> Assignment:
    tests = {"test_double.py": "def test_it(submission): pass\n"}
    return laid_out(tmp_path, "double", "double", tests, "seed = 7\n")


def test_without_a_seed_the_releases_own_counts(double: Assignment) -> None:
    assert GradingRequest(double, Path("a.py")).seed == 7
    assert GradingRequest(double, Path("a.py"), GradingOptions(seed=0)).seed == 0


def test_pytests_command_line_makes_the_same_request(
    double: Assignment, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[GradingRequest] = []

    def opened(run: GradingRun) -> None:
        asked.append(run.request)
        raise KeyboardInterrupt  # nothing need be graded

    monkeypatch.setattr(GradingRun, "opened", opened)
    pytester.runpytest_inprocess(
        str(double.folder), "--disable-plugin-autoload", "-p", "gradekit.plugin", "--submission", "a.py",
        "-k", "dtype", "--gradekit-profile=quick",
    )  # fmt: skip
    options = GradingOptions(keyword="dtype", profile="quick")
    assert asked == [GradingRequest(double, Path("a.py"), options)]


def test_a_submission_is_read_once(double: Assignment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gradekit.plugin import grade

    path, reads = tmp_path / "a.py", list[str]()
    path.write_text("def double(x): return x\n")
    opened: Callable[..., Any] = Path.open

    def noted(self: Path, *args: Any, **options: Any) -> Any:
        reads.extend([self.name] if self == path else [])
        return opened(self, *args, **options)

    monkeypatch.setattr(Path, "open", noted)
    assert [check.id for check in grade(GradingRequest(double, path)).checks] == ["test_it"]
    assert reads == ["a.py"]
