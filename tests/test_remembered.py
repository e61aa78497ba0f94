"""What failed last time is kept for each file, and forgotten when nothing fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradekit import remembered


def test_what_failed_is_known_the_next_time_for_that_file_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    one, other = tmp_path / "one.py", tmp_path / "other.py"
    assert remembered.failed(one) == frozenset()
    remembered.remember(one, ["test_b", "test_a"])
    assert remembered.failed(one) == {"test_a", "test_b"}
    assert remembered.failed(other) == frozenset()
    remembered.remember(one, [])
    assert remembered.failed(one) == frozenset()


def test_a_broken_file_says_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    remembered.remember(tmp_path, ["test_a"])
    (file,) = (tmp_path / "gradekit" / "failed").iterdir()
    file.write_text("{")
    assert remembered.failed(tmp_path) == frozenset()
