"""What the tutoring itself gets wrong, and goes on behind, fails its tests."""

import logging
from collections.abc import Iterator

import pytest

from gradekit.repair.unexpected import LOG


class Kept(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@pytest.fixture(autouse=True)
def unexpected() -> Iterator[list[logging.LogRecord]]:
    """The errors that were survived, which a test that expects some takes away: no rule and no look at a kernel raises."""
    kept = Kept()
    LOG.addHandler(kept)
    yield kept.records
    LOG.removeHandler(kept)
    assert [record.getMessage() for record in kept.records] == []
