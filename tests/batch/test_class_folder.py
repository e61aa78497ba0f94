"""What people decide about a class's submissions, by the words that they type."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gradekit.batch.class_folder import ClassFolder
from gradekit.batch.intake import HandIn
from gradekit.batch.store import ResultKey
from gradekit.marks import Mark, MarkError
from tests.report.samples import FAILED, PENDING, REJECTED, record

HALVES = [replace(PENDING, id=f"test_speed[{name}]", possible=points) for name, points in (("a", 5.0), ("b", 15.0))]


def folder(root: Path, found: dict[str, object]) -> ClassFolder:
    """A class in which ada has handed in what came to the record `found`."""
    made = ClassFolder.open(root / "out", new=True)
    made.store.add_hand_ins("softmax", [(HandIn("ada", root / "a.py"), "digest")])
    made.store.add_result(ResultKey("softmax", "digest", "r", 1, "cpu"), found, "host")
    return made


def given(made: ClassFolder) -> dict[str, float | None]:
    return {check: kept.points for (_, check), kept in made.store.marks("softmax").items()}


def test_the_name_of_a_parametrized_test_marks_all_its_checks(tmp_path: Path) -> None:
    made = folder(tmp_path, record(FAILED, *HALVES))
    assert made.mark("softmax", "ada", "test_speed", Mark(10.0)) == "ada, test_speed: 10 points"
    assert given(made) == {"test_speed[a]": 2.5, "test_speed[b]": 7.5}
    made.mark("softmax", "ada", "test_speed[b]", Mark(15.0))
    assert given(made)["test_speed[b]"] == 15.0


def test_a_group_is_worth_what_its_checks_are(tmp_path: Path) -> None:
    with pytest.raises(MarkError, match="test_speed is worth 0 to 20 points, and not 21"):
        folder(tmp_path, record(*HALVES)).mark("softmax", "ada", "test_speed", Mark(21.0))


def test_a_rejected_submission_can_be_marked_as_a_whole(tmp_path: Path) -> None:
    made = folder(tmp_path, record(**REJECTED))
    assert made.mark("softmax", "ada", "total", Mark(50.0)) == "ada, total: 50 points"


def test_a_graded_submission_is_marked_by_its_checks(tmp_path: Path) -> None:
    with pytest.raises(MarkError, match="mark its checks, which are"):
        folder(tmp_path, record(FAILED)).mark("softmax", "ada", "total", Mark(50.0))
