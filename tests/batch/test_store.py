"""The store keeps everything, and the newest counts."""

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from gradekit.batch.intake import HandIn
from gradekit.batch.store import ResultKey, Store
from gradekit.marks import Mark
from gradekit.request import GradingOptions
from tests.batch import postgres
from tests.patience import GUARD

KEY = ResultKey("softmax", "ab" * 32, "r1", 7, "cpu")
WHEN = datetime(2026, 11, 2, 14, tzinfo=UTC)


def record(status: str = "graded", earned: float = 50.0) -> dict[str, Any]:
    return {"status": status, "score": {"earned": earned, "possible": 100.0, "pending": 0.0}}


@pytest.fixture(scope="module")
def postgresql() -> Iterator[str]:
    if postgres.missing():
        pytest.skip(postgres.missing())
    with postgres.server() as url:
        yield url


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "sqlite":
        return Store(f"sqlite:///{tmp_path}/class.db")
    url = str(request.getfixturevalue("postgresql"))
    with sa.create_engine(url, poolclass=sa.NullPool).begin() as connection:
        connection.execute(sa.text("DROP SCHEMA public CASCADE"))
        connection.execute(sa.text("CREATE SCHEMA public"))
    return Store(url)


def test_a_hand_in_is_remembered_once(store: Store) -> None:
    first, second = (HandIn("ada", Path("ada.py"), "Ada", "a@b.c", WHEN, digest=digest) for digest in ("d1", "d2"))
    assert store.add_hand_ins("softmax", [first, first]) == 1
    assert store.add_hand_ins("softmax", [first, second]) == 1
    assert store.hand_ins("softmax") == [first, second]
    assert store.hand_ins("matmul") == []


def test_the_newest_result_counts_and_the_older_stay(store: Store) -> None:
    store.add_result(KEY, record(earned=50), "one")
    store.add_result(KEY, record(earned=60), "two")
    (newest,) = store.newest("softmax", "r1", 7).values()
    assert (newest.record["score"]["earned"], newest.grader) == (60, "two")
    assert [result.grader for result in store.history("softmax", KEY.digest)] == ["one", "two"]


def test_a_fault_does_not_hide_a_result(store: Store) -> None:
    store.add_result(KEY, record(), "one")
    store.add_result(KEY, record("fault"), "two")
    (newest,) = store.newest("softmax", "r1", 7).values()
    assert newest.record["status"] == "graded"


def test_a_result_is_of_one_release_and_one_seed(store: Store) -> None:
    store.add_result(KEY, record(), "one")
    assert not store.newest("softmax", "r2", 7) and not store.newest("softmax", "r1", 8)


def test_a_persons_later_mark_wins_over_the_earlier(store: Store) -> None:
    store.add_mark("softmax", "ada", "test_speed", Mark(10.0, "tutor", "shown on my card"))
    store.add_mark("softmax", "ada", "test_speed", Mark(12.0, "tutor", "and again"))
    assert store.marks("softmax")["ada", "test_speed"] == Mark(12.0, "tutor", "and again")


def test_how_a_class_is_graded_is_remembered(store: Store) -> None:
    assert store.options("softmax") is None
    store.add_options("softmax", GradingOptions(seed=3, profile="quick"))
    store.add_options("softmax", GradingOptions(seed=4, hidden=True))
    assert store.options("softmax") == GradingOptions(seed=4, hidden=True) and store.options("matmul") is None


def test_what_is_committed_survives_a_kill(tmp_path: Path) -> None:
    code = (
        "import os, signal; from tests.batch.test_store import KEY, record; from gradekit.batch.store import Store;"
        f"store = Store('sqlite:///{tmp_path}/class.db'); store.add_result(KEY, record(), 'x'); "
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    root = Path(__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, timeout=GUARD, check=False).returncode == -9
    assert len(Store(f"sqlite:///{tmp_path}/class.db").newest("softmax", "r1", 7)) == 1
    with closing(sqlite3.connect(tmp_path / "class.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_two_stores_write_to_one_database_at_the_same_time(store: Store) -> None:
    from concurrent.futures import ThreadPoolExecutor

    stores = [store, Store(store.url)]

    def write(number: int) -> None:
        stores[number % 2].add_result(ResultKey("softmax", f"{number:064d}", "r1", 7, "cpu"), record(), "x")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(60)))
    assert len(stores[0].newest("softmax", "r1", 7)) == 60


def test_two_commands_may_make_the_database_at_the_same_time(store: Store) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with sa.create_engine(store.url, poolclass=sa.NullPool).begin() as connection:
        for table in ("hand_in", "result", "kept", "mark", "grading_options"):
            connection.execute(sa.text(f"DROP TABLE {table}"))
    with ThreadPoolExecutor(6) as pool:
        made = list(pool.map(lambda _: Store(store.url), range(6)))
    assert [one.hand_ins("softmax") for one in made] == [[]] * 6
