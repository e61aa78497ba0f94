"""Submissions of a course are graded one after the other, as a class is."""

from collections.abc import Iterator

import pytest

from gradekit import reuse


@pytest.fixture(scope="module", autouse=True)
def warm() -> Iterator[None]:
    """Submissions share what they may, as in a class, whose records are those of single checks (tests/test_reuse.py)."""
    with reuse.kept():
        yield
