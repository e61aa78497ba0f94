"""Fixtures that lay out the sample assignment and submissions."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gradekit.assignment import Assignment, load
from tests.plugin.samples import TESTS, TOML


@pytest.fixture
def assignment(tmp_path: Path) -> Callable[..., Assignment]:
    """Makes the assignment, with `tests` as its test file."""

    def make(tests: str = TESTS) -> Assignment:
        folder = tmp_path / "assignments" / "double"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "assignment.toml").write_text(TOML)
        (folder / "test_double.py").write_text(tests)
        return load(folder)

    return make


@pytest.fixture
def submitted(tmp_path: Path) -> Callable[[str], Path]:
    """Writes a submission with this text."""

    def write(text: str) -> Path:
        path = tmp_path / "submission.py"
        path.write_text(text)
        return path

    return write
