"""The grade book: results, people's marks and the course's policy become a line for each student, in an assignment and
in a course; their CSV files. Pure functions of what the store gave; a person's mark wins over the machine's points."""

import csv
import hashlib
import io
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from gradekit.batch.intake import HandIn, Student
from gradekit.batch.policy import Course, Policy, spelled
from gradekit.credit import rounded
from gradekit.marks import Mark, applied
from gradekit.report import record
from gradekit.report.grade import grade
from gradekit.report.text import csv_cell, one_line, points

HEADER = (
    "student", "name", "email", "assignment", "points", "possible", "pending", "penalty_percent", "status", "submitted",
    "attempts", "note",
)  # fmt: skip

TO_DO = "to do"  # the status of what was handed in and waits to be graded


@dataclass(frozen=True)
class Line:
    """What a student has in one assignment: `points` after the `penalty` (percent), of `possible`; `pending` were not
    measured. `status` is graded, rejected, pending, fault or to do (where points are no result) or missing; `digest` is
    that of the submission which counts."""

    student: str
    assignment: str
    status: str
    points: float = 0.0
    possible: float = 0.0
    pending: float = 0.0
    penalty: float = 0.0
    name: str = ""
    email: str = ""
    submitted: datetime | None = None
    attempts: int = 0
    note: str = ""
    digest: str = ""

    @property
    def label(self) -> str:
        """What to call the student: the name, where it is known, and the key of the grade book."""
        return labelled(self.student, self.name)

    @property
    def counts(self) -> bool:
        """Whether there is a result to hand to an LMS: a fault of the grader is no zero."""
        return self.status in ("graded", "rejected")


def labelled(student: str, name: str) -> str:
    """("4711", "Ada Lovelace") -> "Ada Lovelace (4711)"; without a name, the student's key."""
    return f"{name} ({student})" if name and name != student else student


def printed(student: str) -> str:
    """A student's key as a line of text, and no other's: where it cannot be printed as it is, with a digest of it."""
    return distinct(one_line(student), student)


def distinct(text: str, student: str) -> str:
    """A text made from a student's key and from no other: where it is not the key itself, with a digest of that."""
    key = student.encode("utf-8", "backslashreplace")
    return text if text == student else f"{text}~{hashlib.sha256(key).hexdigest()[:12]}"


def to_csv(lines: Iterable[Line]) -> str:
    """gradebook.csv: as the header says; empty points where there is no result."""
    return _table([HEADER, *map(_cells, lines)])


def _table(rows: Iterable[Sequence[str]]) -> str:
    """A CSV file, no cell of which is read as a formula."""
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(map(csv_cell, row) for row in rows)
    return stream.getvalue()


def _cells(line: Line) -> Sequence[str]:
    result = [points(line.points), points(line.possible), points(line.pending), points(line.penalty)]
    return [
        printed(line.student), line.name, line.email, line.assignment, *(result if line.counts else ["", "", "", ""]),
        line.status, line.submitted.isoformat() if line.submitted else "", str(line.attempts), line.note,
    ]  # fmt: skip


# --- all assignments of a course --------------------------------------------------------------------------------------

Lines = Mapping[str, Sequence[Line]]  # the grade book's lines by assignment

EXCUSED = "EX"


@dataclass(frozen=True)
class CourseRow:
    """What a student has in the course: a line for each assignment, the `total` in percent (None: nothing counts yet),
    which assignments are `dropped` as the lowest, and for which they are `excused`."""

    student: str
    lines: Mapping[str, Line]
    total: float | None = None
    dropped: tuple[str, ...] = ()
    excused: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The student's name, where a line has it."""
        return next((line.name for line in self.lines.values() if line.name), "")

    @property
    def email(self) -> str:
        """The student's address, where a line has it."""
        return next((line.email for line in self.lines.values() if line.email), "")

    def percent(self, id: str) -> str:
        """The share in an assignment, in percent; empty where there is no result, and EX where they are excused."""
        share = None if id in self.excused else share_of(self.lines[id])
        return EXCUSED if id in self.excused else "" if share is None else points(100 * share)


def share_of(line: Line) -> float | None:
    """What part of an assignment a line is; nothing handed in is 0, and None is a line without a result."""
    if line.status == "missing":
        return 0.0
    return line.points / line.possible if line.counts and line.possible else None


def course_rows(lines: Lines, course: Course) -> list[CourseRow]:
    """A row for each student who is in any line; who is not among an assignment's lines has not handed it in."""
    by_student: dict[str, dict[str, Line]] = {}
    for id, each in lines.items():
        for line in each:
            by_student.setdefault(line.student, {})[id] = line
    return [
        _row(student, {id: own.get(id) or Line(student, id, "missing") for id in lines}, course)
        for student, own in sorted(by_student.items())
    ]


def _row(student: str, lines: Mapping[str, Line], course: Course) -> CourseRow:
    excused = tuple(id for id in lines if student in course.policy(id).excused)
    shares = {id: share for id, line in lines.items() if id not in excused and (share := share_of(line)) is not None}
    weights = {id: weight for id in shares if (weight := course.policy(id).weight)}
    kept, mean = _kept(shares, weights, max(len(weights) - course.drop_lowest, 1)) if weights else ([], None)
    total = None if mean is None else rounded(100 * mean)
    return CourseRow(student, lines, total, tuple(id for id in weights if id not in kept), excused)


def _kept(shares: Mapping[str, float], weights: Mapping[str, float], number: int) -> tuple[list[str], float]:
    """The `number` with the highest weighted mean, and that mean: by Dinkelbach's method for fractional programs."""
    mean, better = -1.0, 0.0
    while better > mean:
        mean = better
        kept = sorted(weights, key=lambda id: weights[id] * (shares[id] - mean))[-number:]
        better = sum(weights[id] * shares[id] for id in kept) / sum(weights[id] for id in kept)
    return kept, mean


def course_csv(found: Iterable[CourseRow], ids: Sequence[str]) -> str:
    """course.csv: a line for each student, with the share in each assignment and the total, all in percent."""
    return _table([["student", "name", "email", *ids, "total", "dropped"], *(
        [printed(row.student), row.name, row.email, *(row.percent(id) for id in ids),
         "" if row.total is None else points(row.total), " ".join(row.dropped)] for row in found
    )])  # fmt: skip


# --- from results, marks and the policy to lines ----------------------------------------------------------------------

Marks = Mapping[tuple[str, str], Mark]
Records = Mapping[str, Mapping[str, Any]]  # report records by the submission's digest


def marked(found: Mapping[str, Any], student: str, marks: Marks, possible: float = 0.0) -> dict[str, Any]:
    """The record `found` with what people decided for `student`; `possible` are the assignment's points."""
    given = {check: mark for (whose, check), mark in marks.items() if whose == student}
    return record.to_dict(applied(record.from_dict(found), given, possible)) if given else dict(found)


def possible_points(records: Records) -> float:
    """What the assignment is worth, as far as any record says."""
    return max((found["score"]["possible"] for found in records.values()), default=0.0)


def lines(
    assignment: str, hand_ins: Iterable[HandIn], records: Records, marks: Marks, policy: Policy,
    roster: Iterable[Student] = (),
) -> list[Line]:  # fmt: skip
    """The grade book's lines, by student: those who handed in, and those on the class list who did not."""
    by_student: dict[str, list[HandIn]] = defaultdict(list)
    for hand_in in hand_ins:
        by_student[hand_in.student].append(hand_in)
    possible = possible_points(records)
    found = []
    for student, given in by_student.items():
        digests = [hand_in.digest for hand_in in given if hand_in.digest in records]
        own = {digest: marked(records[digest], student, marks, possible) for digest in digests}
        line = _line(assignment, student, given, own, policy)
        if line.status == "rejected" and not line.possible:  # nothing could be read, and no check was tried
            line = replace(line, possible=policy.scale or possible)
        found.append(line)
    found += [Line(one.student, assignment, "missing", name=one.name, email=one.email) for one in roster
              if one.student not in by_student]  # fmt: skip
    return sorted(found, key=lambda line: line.student)


def _line(assignment: str, student: str, given: Sequence[HandIn], records: Records, policy: Policy) -> Line:
    """A student's line: the attempt that counts; where none has a result, that the last is to do, or a fault."""
    newest, found = given[-1], ((hand_in, records.get(hand_in.digest)) for hand_in in given)
    status, note = ("fault", "the grader failed") if newest.digest in records else (TO_DO, "not graded yet")
    line = Line(student, assignment, status, name=newest.name, email=newest.email, attempts=len(given))
    tried = [_attempt(line, one, graded, policy) for one, graded in found if graded and graded["status"] != "fault"]
    chosen = chosen_attempt([one for one in tried if one.status != "pending"] or tried, policy)
    return chosen or replace(line, submitted=newest.submitted, note=note)


def _attempt(line: Line, hand_in: HandIn, found: Mapping[str, Any], policy: Policy) -> Line:
    """The line with what this hand-in counts; it is pending where nothing could be measured."""
    worth = grade(found, policy.pending)
    mine = replace(
        line, status="pending" if worth.is_open else found["status"], points=worth.points, possible=worth.possible,
        pending=worth.pending, submitted=hand_in.submitted, note=found["message"], digest=hand_in.digest,
    )  # fmt: skip
    return counted(mine, policy, late=hand_in.late)


LATE_WITHOUT_TIME = "late, says the LMS, which does not say by how much: no points were taken off here"


def counted(line: Line, policy: Policy, *, late: bool = False) -> Line:
    """The graded line of an attempt as it counts under `policy`; `late` is what the LMS says without a time."""
    if policy.scale and line.possible:
        scaled, pending = (rounded(one * policy.scale / line.possible) for one in (line.points, line.pending))
        line = replace(line, points=scaled, pending=pending, possible=policy.scale)
    if policy.is_closed(line.submitted, line.student):
        return replace(line, points=0.0, penalty=100.0, note="handed in after the assignment closed")
    earned, after = min(line.points, line.possible + policy.extra_credit), policy.lateness(line.submitted, line.student)
    percent = policy.late.percent(after)
    why = f"{spelled(after)} late: {percent:g} % less" if percent else LATE_WITHOUT_TIME * late
    earned = rounded(earned * (100.0 - percent) / 100.0)
    return replace(line, points=earned, penalty=percent, note=why or line.note)


def chosen_attempt(attempts: Sequence[Line], policy: Policy) -> Line | None:
    """The attempt that counts, of no more than are allowed: the best, or the last before closing."""
    allowed = sorted(attempts, key=lambda a: a.submitted or datetime.min.replace(tzinfo=UTC))[: policy.attempts or None]
    if policy.keep == "last":
        in_time = [one for one in allowed if not policy.is_closed(one.submitted, one.student)]
        return next(reversed(in_time or allowed), None)
    return max(allowed, key=lambda one: one.points, default=None)
