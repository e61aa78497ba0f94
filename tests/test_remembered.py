"""The last check is kept for each file, and served again where nothing has changed."""

import os
from pathlib import Path
from typing import Any

import pytest

from gradekit import remembered
from gradekit.submission import read
from gradekit.versions import version

from .report.samples import FAILED, PASSED, record

SOURCE = "def add(x, y):\n    return x\n"


def kept(path: Path) -> dict[str, Any]:
    """A record of vector_add's as a check of the file at `path` leaves it."""
    path.write_text(SOURCE)
    found = record(PASSED, FAILED) | {"assignment": "vector_add", "submission": read(path).facts()}
    found["environment"] = {"gradekit": version("gradekit")}
    remembered.keep(path, found)
    return found


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "gradekit" / "last"


def test_the_last_record_is_known_the_next_time_for_that_file_alone(tmp_path: Path) -> None:
    one, other = tmp_path / "one.py", tmp_path / "other.py"
    assert remembered.last(one) is None
    found = kept(one)
    assert remembered.last(one) == found and remembered.last(other) is None


def test_a_broken_file_says_nothing(tmp_path: Path, cache: Path) -> None:
    kept(tmp_path / "one.py")
    (file,) = cache.iterdir()
    file.write_text("{")
    assert remembered.last(tmp_path / "one.py") is None


def test_an_unchanged_submission_is_told_from_a_changed_one(tmp_path: Path) -> None:
    path = tmp_path / "one.py"
    found = kept(path)
    assert remembered.unchanged(path, None) == remembered.unchanged(path, "vector_add") == found
    assert remembered.unchanged(path, "softmax") is None
    path.write_text(SOURCE + "\n")
    assert remembered.unchanged(path, None) is None


def test_a_changed_assignment_or_another_gradekit_needs_a_new_check(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "one.py"
    kept(path)
    (file,) = cache.iterdir()
    os.utime(file, (0, 0))
    assert remembered.unchanged(path, None) is None
    os.utime(file)
    monkeypatch.setattr(remembered, "version", lambda _name: "0.0")
    assert remembered.unchanged(path, None) is None


def test_only_the_newest_records_are_kept(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "MOST_FILES", 2)
    for number in range(4):
        kept(tmp_path / f"{number}.py")
    assert len(list(cache.iterdir())) == 3  # two older ones, and the new one
    assert remembered.last(tmp_path / "3.py") is not None and remembered.last(tmp_path / "0.py") is None
