"""The grade book of a course: what each student has in all assignments, and the total. Pure functions of the lines."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gradekit.batch.course_file import Course
from gradekit.batch.gradebook import Line, printed
from gradekit.credit import rounded
from gradekit.report.text import csv_cell, points

Lines = Mapping[str, Sequence[Line]]
"""The grade book's lines by assignment."""

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


def rows(lines: Lines, course: Course) -> list[CourseRow]:
    """A row for each student who is in any line; who is not among an assignment's lines has not handed it in."""
    by_student: dict[str, dict[str, Line]] = {}
    for id, each in lines.items():
        for line in each:
            by_student.setdefault(line.student, {})[id] = line
    return [_row(student, _complete(student, by_student[student], lines), course) for student in sorted(by_student)]


def _complete(student: str, own: Mapping[str, Line], lines: Lines) -> dict[str, Line]:
    name, email = (next((word for line in own.values() if (word := getattr(line, field))), "")
                   for field in ("name", "email"))  # fmt: skip
    return {id: own.get(id) or Line(student, id, "missing", name=name, email=email) for id in lines}


def _row(student: str, lines: Mapping[str, Line], course: Course) -> CourseRow:
    """The weighted mean of the shares that count. The lowest that are dropped are those with the smallest share, of
    equal ones the first; one always counts."""
    excused = tuple(id for id in lines if student in course.policy(id).excused)
    shares = {id: share for id, line in lines.items() if id not in excused and (share := share_of(line)) is not None}
    lowest = sorted(shares, key=lambda id: shares[id])[: min(course.drop_lowest, max(len(shares) - 1, 0))]
    counted = {id: course.policy(id).weight for id in shares if id not in lowest}
    weight = sum(counted.values())
    total = rounded(100 * sum(shares[id] * each for id, each in counted.items()) / weight) if weight else None
    return CourseRow(student, lines, total, tuple(id for id in shares if id in lowest), excused)


def to_csv(found: Iterable[CourseRow], ids: Sequence[str]) -> str:
    """course.csv: a line for each student, with the share in each assignment and the total, all in percent."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["student", "name", "email", *ids, "total", "dropped"])
    for row in found:
        total = "" if row.total is None else points(row.total)
        cells = [printed(row.student), row.name, row.email, *(row.percent(id) for id in ids), total]
        writer.writerow([csv_cell(cell) for cell in (*cells, " ".join(row.dropped))])
    return stream.getvalue()
