"""The store keeps everything, and the newest counts; so do people's decisions, and gradings with other options are never mixed."""

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from gradekit.assignment import UsageError
from gradekit.batch.class_folder import ClassFolder, GradingSession
from gradekit.batch.intake import HandIn
from gradekit.batch.store import ResultKey, Store
from gradekit.marks import Mark
from gradekit.request import GradingOptions
from tests.batch import postgres
from tests.patience import GUARD
from tests.plugin.samples import laid_out
from tests.report.samples import FAILED, PASSED, PENDING, REJECTED, record

KEY = ResultKey("softmax", "ab" * 32, "r1", 7, "cpu")
WHEN = datetime(2026, 11, 2, 14, tzinfo=UTC)


def recorded(status: str = "graded", earned: float = 50.0) -> dict[str, Any]:
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


def test_a_time_that_comes_later_is_that_of_the_same_file(store: Store) -> None:
    undated = HandIn("ada", Path("ada.py"), digest="d1")
    other, dated = replace(undated, digest="d2"), replace(undated, submitted=WHEN)
    for found in ([undated, other], [dated], [undated]):
        store.add_hand_ins("softmax", found)
    assert store.hand_ins("softmax") == [other, dated]


def test_the_newest_result_counts_and_the_older_stay(store: Store) -> None:
    store.add_result(KEY, recorded(earned=50), "one")
    store.add_result(KEY, recorded(earned=60), "two")
    (newest,) = store.newest("softmax", "r1", 7).values()
    assert (newest.record["score"]["earned"], newest.grader) == (60, "two")
    assert [result.grader for result in store.history("softmax", KEY.digest)] == ["one", "two"]


def test_a_fault_does_not_hide_a_result(store: Store) -> None:
    store.add_result(KEY, recorded(), "one")
    store.add_result(KEY, recorded("fault"), "two")
    (newest,) = store.newest("softmax", "r1", 7).values()
    assert newest.record["status"] == "graded"


def test_a_result_is_of_one_release_and_one_seed(store: Store) -> None:
    store.add_result(KEY, recorded(), "one")
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
        stores[number % 2].add_result(ResultKey("softmax", f"{number:064d}", "r1", 7, "cpu"), recorded(), "x")

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


# --- What people decide, and gradings with other options --------------------------------------------------------------


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
    with pytest.raises(UsageError, match="test_speed is worth 0 to 20 points, and not 21"):
        folder(tmp_path, record(*HALVES)).mark("softmax", "ada", "test_speed", Mark(21.0))


def test_a_rejected_submission_can_be_marked_as_a_whole(tmp_path: Path) -> None:
    made = folder(tmp_path, record(**REJECTED))
    assert made.mark("softmax", "ada", "total", Mark(50.0)) == "ada, total: 50 points"


def test_a_graded_submission_is_marked_by_its_checks(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="mark its checks, which are"):
        folder(tmp_path, record(FAILED)).mark("softmax", "ada", "total", Mark(50.0))
