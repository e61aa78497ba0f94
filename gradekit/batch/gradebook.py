"""The grade book: one line for each student, and its CSV file."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from gradekit.report.text import csv_cell, one_line, points

HEADER = (
    "student", "name", "email", "assignment", "points", "possible", "pending", "penalty_percent", "status", "submitted",
    "attempts", "note",
)  # fmt: skip


@dataclass(frozen=True)
class Line:
    """What a student has in one assignment.

    `points` are those after the `penalty` (percent), of `possible`; `pending` have not been measured, and count in
    `points` what the course decides. `status` is graded, rejected, pending (nothing could be measured) or fault (not
    graded, by no fault of the student), where `points` are no result, or missing. `digest`
    is that of the submission which counts.
    """

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
    text = one_line(student)
    if text == student:
        return text
    return f"{text}~{hashlib.sha256(student.encode('utf-8', 'backslashreplace')).hexdigest()[:12]}"


def to_csv(lines: Iterable[Line]) -> str:
    """gradebook.csv: as the header says; empty points where there is no result; no cell is read as a formula."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(HEADER)
    writer.writerows([csv_cell(cell) for cell in _cells(line)] for line in lines)
    return stream.getvalue()


def _cells(line: Line) -> Sequence[str]:
    result = [points(line.points), points(line.possible), points(line.pending), points(line.penalty)]
    return [
        printed(line.student), line.name, line.email, line.assignment, *(result if line.counts else ["", "", "", ""]),
        line.status, line.submitted.isoformat() if line.submitted else "", str(line.attempts), line.note,
    ]  # fmt: skip
