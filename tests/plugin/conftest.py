"""Fixtures that lay out the sample assignment and submissions."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gradekit.assignment import Assignment, load
from tests.plugin.samples import TESTS, laid_out


@pytest.fixture
def assignment(tmp_path: Path) -> Callable[..., Assignment]:
    """Makes the assignment, with `tests` as its test file."""

    def make(tests: str = TESTS) -> Assignment:
        return load(laid_out(tmp_path, tests) / "double")

    return make


@pytest.fixture
def submitted(tmp_path: Path) -> Callable[[str], Path]:
    """Writes a submission with this text."""

    def write(text: str) -> Path:
        path = tmp_path / "submission.py"
        path.write_text(text)
        return path

    return write
