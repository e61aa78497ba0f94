"""What is known of a class's submissions, in a database: hand-ins, results, and what people decided.

SQLite in a file, or PostgreSQL by its URL. Everything is added and nothing is changed: a result of a regrade stands
beside the older one, a person's later mark beside the earlier, and the newest counts. Each result is committed when it
is known, so that a run can be killed at any moment and resumed.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote_to_bytes

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from gradekit.assignment import UsageError
from gradekit.batch.intake import HandIn
from gradekit.marks import Mark
from gradekit.request import GradingOptions

_METADATA = sa.MetaData()


def _table(name: str, *more: sa.Column[Any] | sa.Index | sa.UniqueConstraint) -> sa.Table:
    return sa.Table(name, _METADATA, sa.Column("id", sa.Integer, primary_key=True), *more)


def _text(name: str, most: int | None = None, *, index: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text if most is None else sa.String(most), nullable=False, index=index)


_HAND_INS = _table(
    "hand_in", _text("assignment", 100, index=True), _text("student"), _text("name"), _text("email"), _text("path"),
    _text("digest", 64),
    _text("submitted", 40),  # ISO 8601 with its offset, or empty
    sa.Column("late", sa.Boolean, nullable=False), _text("problem"), _text("seen", 40),
    sa.UniqueConstraint("assignment", "student", "digest", "submitted"),
)  # fmt: skip

_RESULTS = _table(
    "result", _text("digest", 64), _text("assignment", 100), _text("release", 64),
    sa.Column("seed", sa.BigInteger, nullable=False), _text("machine", 200), _text("status", 20),
    sa.Column("record", sa.JSON, nullable=False), _text("graded", 40), _text("grader"),
    sa.Index("result_key", "assignment", "digest", "release", "seed", "machine"),
)  # fmt: skip

_KEPT = _table(  # beside a result: not part of the record, and large
    "kept", _text("digest", 64), _text("assignment", 100), _text("release", 64),
    sa.Column("seed", sa.BigInteger, nullable=False),
    _text("programs"),  # that wait for a card, as gradekit.recorded writes them, or empty
    _text("fingerprint"),  # JSON, or empty
    sa.Index("kept_key", "assignment", "digest", "release", "seed"),
)  # fmt: skip

_MARKS = _table(
    "mark", _text("assignment", 100, index=True), _text("student"), _text("check"),
    sa.Column("points", sa.Float),  # none: a comment alone, or the machine's points again
    _text("why"), _text("person"),
    _text("answer", 64),  # for this answer alone, where it is one to a question
    _text("made", 40),
)  # fmt: skip

_REQUESTS = _table(  # what students asked to be looked at again
    "request", _text("assignment", 100, index=True), _text("student"), _text("check"), _text("text"), _text("made", 40),
    _text("answer"),  # empty: it is open
    _text("person"),
)  # fmt: skip

_OPTIONS = _table(
    "grading_options", _text("assignment", 100, index=True),
    sa.Column("options", sa.JSON, nullable=False),  # as GradingOptions.to_json gives them
    _text("made", 40),
)  # fmt: skip


@dataclass(frozen=True)
class ResultKey:
    """What a result depends on: the submission, the assignment's release, the seed, and the class of machine."""

    assignment: str
    digest: str
    release: str
    seed: int
    machine: str


@dataclass(frozen=True)
class StoredResult:
    """A report record, with when and by what it was made."""

    key: ResultKey
    record: Mapping[str, Any]
    graded: datetime
    grader: str


@dataclass(frozen=True)
class StoredRequest:
    """What a student asked to be looked at again, and the `answer` of a `person`; empty while it is open."""

    id: int
    student: str
    check: str
    text: str
    made: datetime
    answer: str = ""
    person: str = ""


class StoreError(UsageError):
    """The database cannot be reached: why."""


class Store:
    """The database at `url` ("sqlite:///class.db", "postgresql+psycopg://..."); made on first use.

    Safe to use from several threads and processes: a transaction is one short statement or two.

    Raises:
        StoreError: there is no such database, or no driver for it.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._engine = _engine(url)
        if self._engine.dialect.name == "sqlite":
            sa.event.listen(self._engine, "connect", _configure_sqlite)
        _make_tables(self._engine)

    def _rows(self, query: sa.Select[Any]) -> list[sa.RowMapping]:
        with self._engine.begin() as connection:
            return list(connection.execute(query).mappings())

    def _add(self, table: sa.Table, *rows: Mapping[str, Any]) -> None:
        with self._engine.begin() as connection:
            connection.execute(sa.insert(table), list(rows))

    # --- hand-ins -----------------------------------------------------------------------------------------------------

    def add_hand_ins(self, assignment: str, found: Iterable[tuple[HandIn, str]]) -> int:
        """Remember hand-ins with the digests of their files; how many were new."""
        table = _HAND_INS.c
        query = sa.select(table.student, table.digest, table.submitted).where(table.assignment == assignment)
        rows = [_hand_in_row(assignment, hand_in, digest) for hand_in, digest in found]
        new = {(row["student"], row["digest"], row["submitted"]): row for row in rows}
        with self._engine.begin() as connection:
            known = {tuple(row) for row in connection.execute(query)}
            fresh = [row for key, row in new.items() if key not in known]
            if fresh:
                connection.execute(sa.insert(_HAND_INS), fresh)
        return len(fresh)

    def hand_ins(self, assignment: str) -> list[tuple[HandIn, str]]:
        """All hand-ins of an assignment with their digests, oldest first."""
        query = sa.select(_HAND_INS).where(_HAND_INS.c.assignment == assignment).order_by(_HAND_INS.c.id)
        return [(_hand_in(row), row["digest"]) for row in self._rows(query)]

    # --- how they are graded ------------------------------------------------------------------------------------------

    def add_options(self, assignment: str, options: GradingOptions) -> None:
        """Remember how the class is graded from now on."""
        self._add(_OPTIONS, {"assignment": assignment, "options": options.to_json(), "made": _now()})

    def options(self, assignment: str) -> GradingOptions | None:
        """How the class was graded last; None where it was not yet."""
        table = _OPTIONS.c
        query = sa.select(table.options).where(table.assignment == assignment).order_by(table.id.desc()).limit(1)
        found = self._rows(query)
        return GradingOptions(**found[0]["options"]) if found else None

    # --- results ------------------------------------------------------------------------------------------------------

    def add_result(
        self, key: ResultKey, record: Mapping[str, Any], grader: str, *, programs: str = "", fingerprint: str = ""
    ) -> None:
        """Commit a result with what is kept beside it; older ones of the same key stay as history."""
        row = {"record": dict(record), "status": record["status"], "graded": _now(), "grader": grader}
        of = {name: value for name, value in vars(key).items() if name != "machine"}
        with self._engine.begin() as connection:
            connection.execute(sa.insert(_RESULTS), [vars(key) | row])
            if programs or fingerprint:
                connection.execute(sa.insert(_KEPT), [of | {"programs": programs, "fingerprint": fingerprint}])

    def programs(self, assignment: str, digest: str, release: str, seed: int) -> str:
        """The newest programs of the submission that wait for a card; empty where there are none."""
        table = _KEPT.c
        query = sa.select(table.programs).where(table.assignment == assignment, table.digest == digest)
        query = query.where(table.release == release, table.seed == seed).order_by(table.id.desc()).limit(1)
        return next((str(row["programs"]) for row in self._rows(query)), "")

    def fingerprints(self, assignment: str) -> dict[str, Any]:
        """The newest fingerprint of every submission, by digest."""
        table = _KEPT.c
        query = sa.select(table.digest, table.fingerprint).where(table.assignment == assignment).order_by(table.id)
        rows = self._rows(query)
        return {row["digest"]: json.loads(row["fingerprint"]) for row in rows if row["fingerprint"]}

    def newest(self, assignment: str, release: str, seed: int) -> dict[tuple[str, str], StoredResult]:
        """The newest result of every submission, by (digest, machine); a fault counts
        only where there is nothing else."""
        table = _RESULTS.c
        query = sa.select(_RESULTS).where(table.assignment == assignment, table.release == release, table.seed == seed)
        rows = self._rows(query.order_by(table.id))
        chosen: dict[tuple[str, str], StoredResult] = {}
        for row in sorted(rows, key=lambda row: row["status"] != "fault"):  # stable: faults first, so that others win
            chosen[row["digest"], row["machine"]] = _result(row)
        return chosen

    def assignments(self) -> list[str]:
        """The assignments of which there are hand-ins, in the order in which they came."""
        table = _HAND_INS.c
        query = sa.select(table.assignment).group_by(table.assignment).order_by(sa.func.min(table.id))
        return [row["assignment"] for row in self._rows(query)]

    def gradings(self, assignment: str) -> list[tuple[str, int]]:
        """The release with options and the seed of each grading of which there are results, the newest first."""
        table = _RESULTS.c
        query = sa.select(table.release, table.seed).where(table.assignment == assignment)
        query = query.group_by(table.release, table.seed).order_by(sa.func.max(table.id).desc())
        return [(row["release"], row["seed"]) for row in self._rows(query)]

    def history(self, assignment: str, digest: str) -> list[StoredResult]:
        """Every result of one submission, oldest first: who was graded when, by what, on which machine."""
        table = _RESULTS.c
        query = sa.select(_RESULTS).where(table.assignment == assignment, table.digest == digest).order_by(table.id)
        return [_result(row) for row in self._rows(query)]

    # --- what people decided

    def add_mark(self, assignment: str, student: str, check: str, mark: Mark) -> None:
        """A person's decision: it wins over the machine's points and survives regrades;
        without points it takes one back."""
        row = {"assignment": assignment, "student": student, "check": check, "made": _now()}
        given = {"points": mark.points, "why": mark.comment, "person": mark.by, "answer": mark.answer}
        self._add(_MARKS, row | given)

    def marks(self, assignment: str) -> dict[tuple[str, str], Mark]:
        """The newest decision on each check, by (student, check)."""
        query = sa.select(_MARKS).where(_MARKS.c.assignment == assignment).order_by(_MARKS.c.id)
        return {
            (row["student"], row["check"]): Mark(
                row["points"], row["person"], row["why"], row["answer"], datetime.fromisoformat(row["made"])
            )
            for row in self._rows(query)
        }

    def add_request(self, assignment: str, student: str, check: str, text: str) -> None:
        """Remember that a student asks for a check to be looked at again."""
        row = {"assignment": assignment, "student": student, "check": check, "text": text, "made": _now()}
        self._add(_REQUESTS, row | {"answer": "", "person": ""})

    def answer_request(self, id: int, answer: str, person: str) -> None:
        """Answer a request; the first answer stays.

        Raises:
            StoreError: there is no open request of this number.
        """
        change = sa.update(_REQUESTS).where(_REQUESTS.c.id == id, _REQUESTS.c.answer == "")
        with self._engine.begin() as connection:
            if not connection.execute(change.values(answer=answer, person=person)).rowcount:
                raise StoreError(f"there is no open request {id}")

    def requests(self, assignment: str) -> list[StoredRequest]:
        """All requests of an assignment, oldest first."""
        query = sa.select(_REQUESTS).where(_REQUESTS.c.assignment == assignment).order_by(_REQUESTS.c.id)
        known = [{name: value for name, value in row.items() if name != "assignment"} for row in self._rows(query)]
        return [StoredRequest(**row | {"made": datetime.fromisoformat(row["made"])}) for row in known]


def _engine(url: str) -> sa.Engine:
    """A connection for each transaction: SQLite's must not travel between threads, and none is left open on a fork."""
    try:
        return sa.create_engine(url, poolclass=NullPool)
    except sa.exc.ArgumentError:
        raise StoreError("a database's address looks like postgresql+psycopg://user@host/name") from None
    except ModuleNotFoundError as error:
        raise StoreError(f"to use this database, install its driver: pip install {error.name}") from None


def _make_tables(engine: sa.Engine) -> None:
    """Make the tables that are not there; another command may be making them at this very moment."""
    most = 10
    for attempt in range(most):
        try:
            return _METADATA.create_all(engine)
        except sa.exc.DBAPIError as error:
            if attempt + 1 == most:
                raise StoreError(f"the database cannot be used: {error.orig}") from None
            time.sleep(0.05 * attempt)


def _configure_sqlite(connection: Any, record: Any) -> None:
    """SQLite: readers do not block the writer, a busy file is waited for, and what is committed is on the disk."""
    for pragma in ("journal_mode=WAL", "busy_timeout=30000", "synchronous=FULL"):
        connection.execute(f"PRAGMA {pragma}")


def _hand_in_row(assignment: str, hand_in: HandIn, digest: str) -> dict[str, Any]:
    when = hand_in.submitted.isoformat() if hand_in.submitted else ""
    own = {"path": _path_text(hand_in.path), "submitted": when, "digest": digest, "seen": _now()}
    return asdict(hand_in) | own | {"assignment": assignment}


def _hand_in(row: sa.RowMapping) -> HandIn:
    when = datetime.fromisoformat(row["submitted"]) if row["submitted"] else None
    of = {name: row[name] for name in ("student", "name", "email", "problem", "late")}
    return HandIn(path=_path(row["path"]), submitted=when, **of)


_BYTES = "bytes:"


def _path_text(path: Path) -> str:
    """A path as text; one that is not UTF-8 byte by byte, percent-encoded."""
    text = str(path)
    try:
        text.encode()
    except UnicodeEncodeError:
        return _BYTES + quote(os.fsencode(path))
    return text


def _path(text: str) -> Path:
    return Path(os.fsdecode(unquote_to_bytes(text.removeprefix(_BYTES))) if text.startswith(_BYTES) else text)


def _result(row: sa.RowMapping) -> StoredResult:
    key = ResultKey(row["assignment"], row["digest"], row["release"], row["seed"], row["machine"])
    return StoredResult(key, row["record"], datetime.fromisoformat(row["graded"]), row["grader"])


def _now() -> str:
    return datetime.now(UTC).isoformat()
