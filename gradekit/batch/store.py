"""What is known of a class's submissions, in a database: hand-ins, results, and what people decided.

SQLite in a file, or PostgreSQL by its URL. Everything is added and nothing is changed: of results and marks, the newest
counts. Each result is committed when it is known, so that a run can be killed at any moment and resumed.
"""

import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote_to_bytes

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from gradekit.assignment import UsageError
from gradekit.batch.intake import HandIn
from gradekit.marks import Mark
from gradekit.report.text import one_line
from gradekit.request import GradingOptions

_METADATA = sa.MetaData()


class _Time(sa.TypeDecorator[datetime]):
    """A time as ISO 8601 with its offset; none as the empty text."""

    impl, cache_ok = sa.String(40), True

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> str:
        return value.isoformat() if value else ""

    def process_result_value(self, value: str | None, dialect: sa.Dialect) -> datetime | None:
        return datetime.fromisoformat(value) if value else None


_BYTES = "bytes:"


class _Path(sa.TypeDecorator[Path]):
    """A path as text; one that is not UTF-8 byte by byte, percent-encoded."""

    impl, cache_ok = sa.Text, True

    def process_bind_param(self, value: Path | None, dialect: sa.Dialect) -> str:
        text = str(value)
        try:
            text.encode()
        except UnicodeEncodeError:
            return _BYTES + quote(os.fsencode(text))
        return text

    def process_result_value(self, value: str | None, dialect: sa.Dialect) -> Path:
        text = value or ""
        bytes_of = unquote_to_bytes(text.removeprefix(_BYTES))
        return Path(os.fsdecode(bytes_of) if text.startswith(_BYTES) else text)


def _table(name: str, *more: sa.Column[Any] | sa.Index | sa.UniqueConstraint) -> sa.Table:
    return sa.Table(name, _METADATA, sa.Column("id", sa.Integer, primary_key=True), *more)


def _text(name: str, most: int | None = None, *, index: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text if most is None else sa.String(most), nullable=False, index=index)


def _now(name: str) -> sa.Column[datetime]:
    return sa.Column(name, _Time, nullable=False, default=lambda: datetime.now(UTC))


_HAND_INS = _table(
    "hand_in", _text("assignment", 100, index=True), _text("student"), _text("name"), _text("email"),
    sa.Column("path", _Path, nullable=False), _text("digest", 64), sa.Column("submitted", _Time, nullable=False),
    sa.Column("late", sa.Boolean, nullable=False), _text("problem"), _now("seen"),
    sa.UniqueConstraint("assignment", "student", "digest", "submitted"),
)  # fmt: skip

_RESULTS = _table(
    "result", _text("digest", 64), _text("assignment", 100), _text("release", 64),
    sa.Column("seed", sa.BigInteger, nullable=False), _text("machine", 200), _text("status", 20),
    sa.Column("record", sa.JSON, nullable=False), _now("graded"), _text("grader"),
    sa.Index("result_key", "assignment", "digest", "release", "seed", "machine"),
)  # fmt: skip

_RELEASES = _table(  # the tests that results were made by
    "release", _text("assignment", 100), _text("release", 64), sa.Column("contents", sa.JSON, nullable=False),
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
    _now("made"),
)  # fmt: skip

_REQUESTS = _table(  # what students asked to be looked at again
    "request", _text("assignment", 100, index=True), _text("student"), _text("check"), _text("text"), _now("made"),
    _text("answer"),  # empty: it is open
    _text("person"),
)  # fmt: skip

_OPTIONS = _table(
    "grading_options", _text("assignment", 100, index=True),
    sa.Column("options", sa.JSON, nullable=False),  # as GradingOptions.to_json gives them
    _now("made"),
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
    assignment: str
    student: str
    check: str
    text: str
    made: datetime
    answer: str = ""
    person: str = ""

    @property
    def said(self) -> list[str]:
        """The question and its answer, a sentence each."""
        answer = f"Answered by {one_line(self.person)}: {one_line(self.answer)}" if self.answer else "Not answered yet."
        return [f"Asked about {one_line(self.check)}: {one_line(self.text)}", answer]


class Store:
    """The database at `url` ("sqlite:///class.db", "postgresql+psycopg://..."), made on first use, for several threads
    and processes. Raises UsageError where there is no such database, or no driver for it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._engine = _engine(url)
        if self._engine.dialect.name == "sqlite":
            sa.event.listen(self._engine, "connect", _configure_sqlite)
        _make_tables(self._engine)

    def _rows(self, table: sa.Table, *names: str, **where: Any) -> list[sa.RowMapping]:
        """Of the rows in which columns are as `where` says, oldest first, the columns of these names, or all."""
        wanted: list[Any] = [table.c[name] for name in names] or [table]
        with self._engine.begin() as connection:
            query = sa.select(*wanted).filter_by(**where).order_by(table.c.id)
            return list(connection.execute(query).mappings())

    def _add(self, table: sa.Table, *rows: Mapping[str, Any]) -> None:
        with self._engine.begin() as connection:
            connection.execute(sa.insert(table), list(rows))

    # --- hand-ins -----------------------------------------------------------------------------------------------------

    def add_hand_ins(self, assignment: str, found: Iterable[HandIn]) -> int:
        """Remember hand-ins that were read; how many were new."""
        key = ("student", "digest", "submitted")
        rows = [vars(hand_in) | {"assignment": assignment} for hand_in in found]
        new = {tuple(row[name] for name in key): row for row in rows}
        for row in self._rows(_HAND_INS, *key, assignment=assignment):
            new.pop(tuple(row.values()), None)
        if new:
            self._add(_HAND_INS, *new.values())
        return len(new)

    def hand_ins(self, assignment: str) -> list[HandIn]:
        """All hand-ins of an assignment, oldest first; of a file whose time came later, not the one without a time."""
        names = [field.name for field in fields(HandIn)]
        found = [HandIn(**row) for row in self._rows(_HAND_INS, *names, assignment=assignment)]
        timed = {(one.student, one.digest) for one in found if one.submitted}
        return [one for one in found if one.submitted or (one.student, one.digest) not in timed]

    # --- how they are graded ------------------------------------------------------------------------------------------

    def add_options(self, assignment: str, options: GradingOptions) -> None:
        """Remember how the class is graded from now on."""
        self._add(_OPTIONS, {"assignment": assignment, "options": options.to_json()})

    def options(self, assignment: str) -> GradingOptions | None:
        """How the class was graded last; None where it was not yet."""
        found = self._rows(_OPTIONS, assignment=assignment)
        return GradingOptions(**found[-1]["options"]) if found else None

    # --- results ------------------------------------------------------------------------------------------------------

    def add_release(self, assignment: str, release: str, contents: Mapping[str, str]) -> None:
        """Keep what a release is made of: texts by name."""
        if not self.contents(assignment, release):
            self._add(_RELEASES, {"assignment": assignment, "release": release, "contents": dict(contents)})

    def contents(self, assignment: str, release: str) -> dict[str, str]:
        """What a release is made of; empty where that was not kept."""
        return next((dict(r["contents"]) for r in self._rows(_RELEASES, assignment=assignment, release=release)), {})

    def add_result(
        self, key: ResultKey, record: Mapping[str, Any], grader: str, *, programs: str = "", fingerprint: str = ""
    ) -> None:
        """Commit a result with what is kept beside it; older ones of the same key stay as history."""
        row = {"record": dict(record), "status": record["status"], "grader": grader}
        of = {name: value for name, value in vars(key).items() if name != "machine"}
        with self._engine.begin() as connection:
            connection.execute(sa.insert(_RESULTS), [vars(key) | row])
            if programs or fingerprint:
                connection.execute(sa.insert(_KEPT), [of | {"programs": programs, "fingerprint": fingerprint}])

    def programs(self, key: ResultKey) -> str:
        """The newest programs of the submission that wait for a card; empty where there are none."""
        of = {name: value for name, value in vars(key).items() if name != "machine"}
        return next((str(row["programs"]) for row in reversed(self._rows(_KEPT, "programs", **of))), "")

    def fingerprints(self, assignment: str) -> dict[str, Any]:
        """The newest fingerprint of every submission, by digest."""
        rows = self._rows(_KEPT, "digest", "fingerprint", assignment=assignment)
        return {row["digest"]: json.loads(row["fingerprint"]) for row in rows if row["fingerprint"]}

    def newest(self, assignment: str, release: str, seed: int) -> dict[tuple[str, str], StoredResult]:
        """The newest result of every submission, by (digest, machine); a fault counts only where it is alone."""
        rows = self._rows(_RESULTS, assignment=assignment, release=release, seed=seed)
        rows.sort(key=lambda row: row["status"] != "fault")  # stable: faults first, so that others win
        return {(row["digest"], row["machine"]): _result(row) for row in rows}

    def assignments(self) -> list[str]:
        """The assignments of which there are hand-ins, in the order in which they came."""
        return list(dict.fromkeys(row["assignment"] for row in self._rows(_HAND_INS, "assignment")))

    def gradings(self, assignment: str) -> list[tuple[str, int]]:
        """The release with options and the seed of each grading of which there are results, the newest first."""
        rows = self._rows(_RESULTS, "release", "seed", assignment=assignment)
        return list(dict.fromkeys((row["release"], row["seed"]) for row in reversed(rows)))

    def history(self, assignment: str, digest: str) -> list[StoredResult]:
        """Every result of one submission, oldest first: who was graded when, by what, on which machine."""
        return list(map(_result, self._rows(_RESULTS, assignment=assignment, digest=digest)))

    # --- what people decided

    def add_mark(self, assignment: str, student: str, check: str, mark: Mark) -> None:
        """A person's decision, which wins and survives regrades; without points it takes one back."""
        row = {"assignment": assignment, "student": student, "check": check}
        given = {"points": mark.points, "why": mark.comment, "person": mark.by, "answer": mark.answer}
        self._add(_MARKS, row | given)

    def marks(self, assignment: str) -> dict[tuple[str, str], Mark]:
        """The newest decision on each check, by (student, check)."""
        rows = self._rows(_MARKS, assignment=assignment)
        said = ("points", "person", "why", "answer", "made")
        return {(row["student"], row["check"]): Mark(*(row[name] for name in said)) for row in rows}

    def add_request(self, assignment: str, student: str, check: str, text: str) -> None:
        """Remember that a student asks for a check to be looked at again."""
        row = {"assignment": assignment, "student": student, "check": check, "text": text}
        self._add(_REQUESTS, row | {"answer": "", "person": ""})

    def answer_request(self, id: int, answer: str, person: str) -> None:
        """Answer a request; the first answer stays. Raises UsageError where there is no open request of this number."""
        change = sa.update(_REQUESTS).where(_REQUESTS.c.id == id, _REQUESTS.c.answer == "")
        with self._engine.begin() as connection:
            if not connection.execute(change.values(answer=answer, person=person)).rowcount:
                raise UsageError(f"there is no open request {id}")

    def requests(self, assignment: str) -> list[StoredRequest]:
        """All requests of an assignment, oldest first."""
        return [StoredRequest(**row) for row in self._rows(_REQUESTS, assignment=assignment)]


def _engine(url: str) -> sa.Engine:
    """A connection for each transaction: SQLite's must not travel between threads, and none is left open on a fork."""
    try:
        return sa.create_engine(url, poolclass=NullPool)
    except sa.exc.ArgumentError:
        raise UsageError("a database's address looks like postgresql+psycopg://user@host/name") from None
    except ModuleNotFoundError as error:
        raise UsageError(f"to use this database, install its driver: pip install {error.name}") from None


def _make_tables(engine: sa.Engine) -> None:
    """Make the tables that are not there; another command may be making them at this very moment."""
    most = 10
    for attempt in range(most):
        try:
            return _METADATA.create_all(engine)
        except sa.exc.DBAPIError as error:
            if attempt + 1 == most:
                raise UsageError(f"the database cannot be used: {error.orig}") from None
            time.sleep(0.05 * attempt)


def _configure_sqlite(connection: Any, record: Any) -> None:
    """SQLite: readers do not block the writer, a busy file is waited for, and what is committed is on the disk."""
    for pragma in ("journal_mode=WAL", "busy_timeout=30000", "synchronous=FULL"):
        connection.execute(f"PRAGMA {pragma}")


def _result(row: sa.RowMapping) -> StoredResult:
    key = ResultKey(*(row[field.name] for field in fields(ResultKey)))
    return StoredResult(key, row["record"], row["graded"], row["grader"])
