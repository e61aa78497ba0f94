"""What people decide about a class's submissions, and gradings with other options, which are never mixed."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gradekit.batch.class_folder import ClassFolder, GradingSession
from gradekit.batch.intake import HandIn
from gradekit.batch.store import ResultKey
from gradekit.marks import Mark, MarkError
from tests.plugin.samples import laid_out
from tests.report.samples import FAILED, PASSED, PENDING, REJECTED, record

WITH = record(PASSED, FAILED)
WITHOUT = record(PASSED)


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClassFolder:
    """A class of ada, whom nobody has graded yet."""
    monkeypatch.setenv("GRADEKIT_ASSIGNMENTS", str(laid_out(tmp_path)))
    (tmp_path / "in/ada").mkdir(parents=True)
    (tmp_path / "in/ada/submission.py").write_text("def double(x): ...\n")
    return ClassFolder.open(tmp_path / "out", new=True)


def session(made: ClassFolder, **options: Any) -> GradingSession:
    return GradingSession(made, "double", options=options)


def graded(made: ClassFolder, found: dict[str, Any], **options: Any) -> list[str]:
    """What taking the hand-ins in under these options says; then each gets the result `found`."""
    work = session(made, **options)
    said = work.take_in(made.path.parent / "in")
    for hand_in in made.store.hand_ins("double"):
        made.store.add_result(work.grading.key(hand_in.digest), found, "host")
    return said


def points(made: ClassFolder, **options: Any) -> list[float]:
    return [line.possible for line in session(made, **options).lines()]


@pytest.mark.parametrize("other", [{"hidden": False}, {"profile": "quick"}, {"seed": 3, "secret_seed": 4}])
def test_other_options_are_another_grading(made: ClassFolder, other: dict[str, Any]) -> None:
    assert "1 submission to grade" in graded(made, WITH)[0]
    said = session(made, **other).take_in(made.path.parent / "in")
    assert "1 submission to grade" in said[0]
    assert said[1].startswith("another grading than before") and "unmixed" in said[1]


def test_hidden_tests_are_never_mixed_with_none_and_there_is_a_way_back(made: ClassFolder) -> None:
    graded(made, WITH)
    said = " ".join(graded(made, WITHOUT, hidden=False))
    assert "without hidden tests" in said and "1 result of the other one" in said
    assert points(made) == [40]  # as it was said last
    assert points(made, hidden=True) == [70] and points(made) == [70]
    assert session(made).take_in(made.path.parent / "in") == ["1 hand-in, 0 submissions to grade"]


def test_hand_ins_are_found_again_from_wherever_the_next_command_is_given(
    made: ClassFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert session(made).take_in(Path("in")) == ["1 hand-in, 1 submission to grade"]  # and nobody is left aside
    monkeypatch.chdir("/")
    assert [hand_in.path.is_file() for hand_in in made.store.hand_ins("double")] == [True]


def test_people_are_found_by_name_as_well_as_by_id(made: ClassFolder) -> None:
    made.store.add_hand_ins("double", [
        HandIn("1008", made.path / "a.py", "Frances Allen", "fa@x.y", digest="a"),
        HandIn("1009", made.path / "b.py", "Ada Lovelace", digest="b"), HandIn("1010", made.path / "c.py", "Ada Lovelace", digest="c"),
    ])  # fmt: skip
    for word in ("1008", "Frances Allen", "allenfrances", "frances allen", "FA@x.y"):
        assert made.student("double", word) == "1008"
    with pytest.raises(Exception, match=r"no hand-in of Ada Lovelace for double alone: Ada Lovelace \(1009\), Ada"):
        made.student("double", "Ada Lovelace")
    with pytest.raises(Exception, match=r"no hand-in of allenfrancis for double; did you mean Frances Allen \(1008\)"):
        made.student("double", "allenfrancis")


# --- what people decide about a class's submissions, by the words that they type --------------------------------------


HALVES = [replace(PENDING, id=f"test_speed[{name}]", possible=points) for name, points in (("a", 5.0), ("b", 15.0))]


def folder(root: Path, found: dict[str, object]) -> ClassFolder:
    """A class in which ada has handed in what came to the record `found`."""
    made = ClassFolder.open(root / "out", new=True)
    made.store.add_hand_ins("softmax", [HandIn("ada", root / "a.py", digest="digest")])
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
