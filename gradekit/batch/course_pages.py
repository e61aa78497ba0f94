"""A course as pages: all students by all assignments for staff, and one page for each student. Pure functions."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from gradekit.batch.course_book import EXCUSED, CourseRow, Lines, share_of
from gradekit.batch.course_file import Course
from gradekit.batch.feedback import safe_name
from gradekit.batch.gradebook import Line
from gradekit.report import templates
from gradekit.report.text import counted, one_line, points

STATUSES = ("graded", "rejected", "pending", "fault", "missing")


def course_page(course: Course, lines: Lines, rows: Sequence[CourseRow]) -> str:
    """The course's page: its assignments, and each student's shares and total."""
    ids = list(lines)
    tables = [
        _table("Assignments", ["Assignment", "Weight", "Due", *map(str.capitalize, STATUSES), "Median %"], [
            [_cell(id, f"{quote(id)}/index.html"), _cell(points(course.policy(id).weight)), _cell(_due(course, id)),
             *map(_cell, _counts(lines[id])), _cell(median(lines[id]))] for id in ids
        ]),
        _table("Students, in percent", ["Student", *ids, "Total"], [
            [_cell(row.name or row.student, f"students/{quote(safe_name(row.student))}/index.html"),
             *(_share(row, id, f"{quote(id)}/feedback/{quote(safe_name(row.student))}/report.html") for id in ids),
             _cell("" if row.total is None else points(row.total))] for row in rows
        ]),
    ]  # fmt: skip
    said = [f"{counted(len(rows), 'student')}, {counted(len(ids), 'assignment')}"]
    said += [f"the lowest {course.drop_lowest} of each student are dropped, in brackets"] * (course.drop_lowest > 0)
    view = {"title": one_line(course.name) or "Course", "said": "; ".join(said), "tables": tables}
    return templates.page("course.html", view | {"link": ("course.csv", "The grade book as CSV")})


def student_page(course: Course, row: CourseRow) -> str:
    """A student's own page: the assignments with points, lateness and a link to each report, and the total."""
    table = _table("Assignments", ["Assignment", "Points", "Of", "Not measured", "Penalty", "%", "Weight", "Note"], [
        [_cell(id, _report(row.student, line)), _cell(points(line.points) if line.counts else line.status),
         _cell(points(line.possible) if line.counts else ""), _cell(points(line.pending) if line.pending else ""),
         _cell(f"{points(line.penalty)} %" if line.penalty else ""), _share(row, id),
         _cell(points(course.policy(id).weight)), _cell(line.note)] for id, line in row.lines.items()
    ])  # fmt: skip
    total = "no total yet" if row.total is None else f"{points(row.total)} %"
    title = f"{one_line(row.name or row.student)}: {one_line(course.name) or 'course'}"
    return templates.page("course.html", {"title": title, "said": f"Total: {total}", "tables": [table], "link": ()})


def status(course: Course, lines: Lines) -> str:
    """For staff, as text: by assignment, when it is due, what became of the hand-ins, and the median share."""
    head = ["assignment", "due", *STATUSES, "median %"]
    table = [head, *([id, _due(course, id), *_counts(each), median(each)] for id, each in lines.items())]
    widths = [max(len(row[column]) for row in table) for column in range(len(head))]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in table) + "\n"


def _counts(lines: Sequence[Line]) -> list[str]:
    found = Counter(line.status for line in lines)
    return [str(found[status] or "") for status in STATUSES]


def median(lines: Sequence[Line]) -> str:
    """The median of what those who have a result have, in percent; empty where nobody has one."""
    shares = [share for line in lines if line.counts and (share := share_of(line)) is not None]
    return points(100 * statistics.median(shares)) if shares else ""


def _due(course: Course, id: str) -> str:
    due = course.policy(id).due
    return due.strftime("%Y-%m-%d %H:%M") if due else ""


def _report(student: str, line: Line) -> str:
    there = line.status != "missing"
    return f"../../{quote(line.assignment)}/feedback/{quote(safe_name(student))}/report.html" if there else ""


def _share(row: CourseRow, id: str, link: str = "") -> dict[str, str]:
    share = row.percent(id)
    text = f"({share})" if id in row.dropped else share or row.lines[id].status
    return _cell(text, link if share not in ("", EXCUSED) and row.lines[id].status != "missing" else "")


def _cell(text: str, link: str = "") -> dict[str, str]:
    return {"text": one_line(text), "link": link}


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[Mapping[str, str]]]) -> dict[str, Any]:
    return {"title": title, "head": list(map(one_line, head)), "rows": rows}
