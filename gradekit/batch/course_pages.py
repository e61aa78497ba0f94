"""A course as pages: all students by all assignments for staff, one page for each student, and a board of speeds.
Pure functions."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from gradekit.batch.feedback import safe_name
from gradekit.batch.gradebook import EXCUSED, CourseRow, Line, Lines, share_of
from gradekit.batch.policy import Course
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


# --- speeds beside each other: ratios with an interval; who cannot be told apart shares a rank ------------------------

SIDE = "eager"
"""What speeds are compared against: torch, call by call, which every measured check has."""


@dataclass(frozen=True)
class Speed:
    """How many times as fast as torch a student's call is, with the interval of that ratio."""

    student: str
    value: float
    low: float
    high: float

    @property
    def said(self) -> str:
        """ "1.25 (1.2 to 1.3)"."""
        return f"{self.value:.3g} ({self.low:.3g} to {self.high:.3g})"


def speeds(records: Mapping[str, Mapping[str, Any]]) -> dict[str, list[Speed]]:
    """By title of the speed check and size, the speeds of all students (by whom the records are), the fastest first."""
    found: dict[str, list[Speed]] = {}
    for student, record in records.items():
        for title, ratio in _ratios(record):
            speed = Speed(student, float(ratio["value"]), float(ratio["low"]), float(ratio["high"]))
            found.setdefault(title, []).append(speed)
    return {title: sorted(each, key=lambda speed: (-speed.value, speed.student)) for title, each in found.items()}


def _ratios(record: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for check in record["checks"]:
        speed = check["details"].get("speed", {})
        if SIDE in speed.get("ratios", {}) and check["outcome"] in ("passed", "failed"):
            yield f"{one_line(check['title'])}, {one_line(speed['size'])}", speed["ratios"][SIDE]


def ranked(found: Sequence[Speed]) -> list[tuple[int, Speed]]:
    """Each speed with its rank; one whose interval reaches the first of a rank's shares that rank."""
    ranks: list[tuple[int, Speed]] = []
    first = None
    for place, speed in enumerate(found, start=1):
        if first is None or speed.high < first[1].low:
            first = (place, speed)
        ranks.append((first[0], speed))
    return ranks


def board(assignment: str, found: Mapping[str, Sequence[Speed]], nicknames: Mapping[str, str]) -> str:
    """The page with those who have a nickname, and nobody else; empty where none of them was timed."""
    tables = []
    for title, each in found.items():
        shown = ranked([speed for speed in each if speed.student in nicknames])
        shares = [rank for rank, _ in shown]
        rows = [
            [_cell(f"{rank} (tie)" if shares.count(rank) > 1 else str(rank)), _cell(nicknames[speed.student]),
             _cell(speed.said)] for rank, speed in shown
        ]  # fmt: skip
        tables += [{"title": title, "head": ["Rank", "Who", "Times as fast as torch"], "rows": rows}] if rows else []
    if not tables:
        return ""
    said = "Whose intervals overlap share a rank. On it is who chose a name for it."
    view = {"title": f"{one_line(assignment)}: speeds", "said": said, "tables": tables, "link": ()}
    return templates.page("course.html", view)


def standing(student: str, found: Mapping[str, Sequence[Speed]]) -> Iterable[str]:
    """Where a student's speeds stand in the class: a sentence for each check, without anybody's name."""
    for title, each in found.items():
        mine = next((speed for speed in each if speed.student == student), None)
        if mine and len(each) > 1:
            slower = sum(speed.high < mine.low for speed in each)
            faster = sum(speed.low > mine.high for speed in each)
            yield (f"Your speed in the class ({title}): {mine.said} times torch; {faster} of {len(each) - 1} others are"
                   f" faster, {slower} slower, the rest cannot be told from yours.")  # fmt: skip
