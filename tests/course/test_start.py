"""A student's folder: what is laid into it, never over their work, and the attempts that are kept there."""

import json
from pathlib import Path

import pytest

from gradekit.assignment import Assignment, UsageError
from gradekit.course import attempts
from gradekit.course.start import start
from tests.report.samples import PASSED, record
from tests.small import laid_out


@pytest.fixture
def softmax(tmp_path: Path) -> Assignment:
    names = ("README.md", "starter.py", "test_softmax.py")
    return laid_out(tmp_path, "softmax", "softmax", {name: f"this is {name}" for name in names})


def test_the_starter_becomes_the_submission(softmax: Assignment, tmp_path: Path) -> None:
    files = start(softmax, tmp_path / "mine" / "softmax")
    assert [file.name for file in files] == ["README.md", "submission.py", "test_softmax.py", "assignment.toml"]
    assert (tmp_path / "mine" / "softmax" / "submission.py").read_text() == "this is starter.py"


def test_nothing_is_overwritten_and_nothing_is_half_done(softmax: Assignment, tmp_path: Path) -> None:
    (tmp_path / "submission.py").write_text("mine")
    with pytest.raises(UsageError) as caught:
        start(softmax, tmp_path)
    assert str(caught.value).startswith(f"{tmp_path / 'submission.py'} would be overwritten")
    assert (tmp_path / "submission.py").read_text() == "mine"
    assert not (tmp_path / "README.md").exists()


def test_force_overwrites_and_keeps_a_copy_of_what_the_student_wrote(softmax: Assignment, tmp_path: Path) -> None:
    for mine in ("mine", "mine again"):
        (tmp_path / "submission.py").write_text(mine)
        files = start(softmax, tmp_path, force=True)
        assert (tmp_path / "submission.py").read_text() == "this is starter.py"
        assert files[-1].read_text() == mine
    assert {path.name for path in tmp_path.glob("*.before-*")} == {"submission.py.before-1", "submission.py.before-2"}


def test_force_keeps_no_copy_of_what_nobody_has_changed(softmax: Assignment, tmp_path: Path) -> None:
    start(softmax, tmp_path)
    assert start(softmax, tmp_path, force=True)
    assert not list(tmp_path.glob("*.before-*"))


# --- A student's own attempts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    ["{", "[]", "3", json.dumps({"when": "", "earned": "many", "possible": 1, "pending": 0}),
     json.dumps({"when": "", "earned": 1, "possible": 1})],
)  # fmt: skip
def test_a_line_that_is_no_attempt_is_passed_over(line: str, tmp_path: Path) -> None:
    attempts.add(tmp_path, record(PASSED))
    with (tmp_path / attempts.FILE).open("a") as file:
        file.write(line + "\n")
    assert [attempt.said for attempt in attempts.read(tmp_path)] == ["40 of 40 points"]
