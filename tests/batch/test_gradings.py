"""Gradings with other options are never mixed: each has its own results, and going back finds them again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gradekit.batch.class_folder import ClassFolder, GradingSession
from gradekit.batch.intake import HandIn
from tests.plugin.samples import laid_out
from tests.report.samples import FAILED, PASSED, record

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
    for _, digest in made.store.hand_ins("double"):
        made.store.add_result(work.request.key(digest), found, "host")
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


def test_people_are_found_by_name_as_well_as_by_id(made: ClassFolder) -> None:
    made.store.add_hand_ins("double", [
        (HandIn("1008", made.path / "a.py", "Frances Allen", "fa@x.y"), "a"),
        (HandIn("1009", made.path / "b.py", "Ada Lovelace"), "b"), (HandIn("1010", made.path / "c.py", "Ada Lovelace"), "c"),
    ])  # fmt: skip
    for word in ("1008", "Frances Allen", "allenfrances", "frances allen", "FA@x.y"):
        assert made.student("double", word) == "1008"
    with pytest.raises(Exception, match=r"no hand-in of Ada Lovelace for double alone: Ada Lovelace \(1009\), Ada"):
        made.student("double", "Ada Lovelace")
    with pytest.raises(Exception, match=r"no hand-in of allenfrancis for double; did you mean Frances Allen \(1008\)"):
        made.student("double", "allenfrancis")
