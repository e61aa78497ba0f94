"""A request is one value: it survives a journey as JSON, refuses nonsense, and is the same however it is asked for."""

import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from gradekit.assignment import Assignment
from gradekit.plugin.profiles import PROFILES
from gradekit.plugin.run_state import GradingRun
from gradekit.request import PROFILE_NAMES, GradingOptions, GradingRequest
from tests.small import laid_out

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
