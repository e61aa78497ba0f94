"""A class whose results are kept in PostgreSQL has the grade book that one in SQLite has, also where a run was killed."""

import signal
import uuid
from pathlib import Path

import pytest

from tests.batch import postgres
from tests.batch.clusters import KINDS, assignments, book, grading, hand_in, histories, wait_for
from tests.patience import GUARD

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(postgres.missing()), reason=postgres.missing() or "there is all that it takes"),
]


def graded(root: Path, *options: str, killed_at: str = "") -> Path:
    """A class in root/in, graded; killed once, when it says so."""
    root.mkdir()
    assignments(root)
    hand_in(root / "in", len(KINDS))
    if killed_at:
        first = grading(root, uuid.uuid4().hex, *options)
        wait_for(killed_at, first)
        first.send_signal(signal.SIGKILL)
        first.communicate()
    last = grading(root, uuid.uuid4().hex, *options)
    said, _ = last.communicate(timeout=GUARD)
    assert last.returncode == 0, said
    return root


def test_postgresql_keeps_what_sqlite_keeps(tmp_path: Path) -> None:
    usual = graded(tmp_path / "sqlite")
    with postgres.server() as url:
        other = graded(tmp_path / "postgresql", "--store", url, killed_at="[1/")
        history = histories(other, url).values()
    assert book(other) == book(usual)
    assert not (other / "out/class.db").exists()
    assert {len(results) for results in history} == {1}
