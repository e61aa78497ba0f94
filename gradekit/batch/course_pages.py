"""A course as pages, by pure functions: students by assignments for staff, each student's own, a board of speeds."""

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gradekit.batch.feedback import safe_name
from gradekit.batch.gradebook import TO_DO, CourseRow, Line, Lines, Records, share_of
from gradekit.batch.policy import Course
from gradekit.batch.summary import STATUS, by_check, shares_of, tally
from gradekit.report import pictures, templates
from gradekit.report.grouping import MARKS, ending, is_right, plain_title
from gradekit.report.speed_sentences import SIDES
from gradekit.report.text import columns, counted, one_line, points, shortened
from gradekit.report.translation import say

STATUSES = ("graded", "rejected", "pending", "fault", TO_DO, "missing")


def course_page(course: Course, lines: Lines, rows: Sequence[CourseRow]) -> str:
    """The course's page: its assignments, and each student's shares and total."""
    shown = {"statuses": STATUSES, "counts": _counts, "median": median, "due": _due, "counted": counted}
    view = {"title": course.name or "Course", "course": course, "lines": lines, "rows": rows, "safe_name": safe_name}
    return templates.page("course.html", view | shown)


def student_page(course: Course, row: CourseRow) -> str:
    """A student's own page: the assignments with points, lateness and a link to each report, and the total."""
    title = f"{row.name or row.student}: {course.name or 'course'}"
    return templates.page("student.html", {"title": title, "course": course, "row": row, "safe_name": safe_name})


def status(course: Course, lines: Lines) -> str:
    """For staff, as text: by assignment, when it is due, what became of the hand-ins, and the median share."""
    head = list(map(say, ("assignment", "due", *STATUSES, "median %")))
    table = [head, *([id, _due(course, id), *_counts(each), median(each)] for id, each in lines.items())]
    widths = [max(columns(row[column]) for row in table) for column in range(len(head))]
    padded = ([cell + " " * (width - columns(cell)) for cell, width in zip(row, widths, strict=True)] for row in table)
    left = any(line.status == TO_DO for each in lines.values() for line in each)
    more = [say("What is to do: the command that began it, with --resume, goes on.")] * left
    return "\n".join([*("  ".join(row).rstrip() for row in padded), *more]) + "\n"


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


# --- speeds beside each other: ratios with an interval; who cannot be told apart shares a rank ------------------------

SIDE = "eager"  # what speeds are compared against: torch, call by call, which every measured check has


@dataclass(frozen=True)
class Speed:
    """How many times as fast as torch a student's call is, with the interval of that ratio."""

    student: str
    value: float
    low: float
    high: float

    @property
    def said(self) -> str:
        """ "1.265 (1.261 to 1.27)"."""
        return f"{self.value:.4g} ({self.low:.4g} to {self.high:.4g})"


def speeds(records: Mapping[str, Mapping[str, Any]]) -> dict[str, list[Speed]]:
    """By title of the speed check and size, the speeds of all whose kernel is right, the fastest first."""
    found: dict[str, list[Speed]] = {}
    for student, record in records.items():
        for title, ratio in _ratios(record) if is_right(record) else ():
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
    ranks = {title: ranked([one for one in each if one.student in nicknames]) for title, each in found.items()}
    ranks = {title: each for title, each in ranks.items() if each}
    view = {"title": f"{assignment}: speeds", "ranks": ranks, "nicknames": nicknames}
    return templates.page("leaderboard.html", view) if ranks else ""


def standing(student: str, found: Mapping[str, Sequence[Speed]]) -> Iterable[str]:
    """Where a student's speeds stand in the class: a sentence for each check, without anybody's name."""
    for title, each in found.items():
        mine = next((speed for speed in each if speed.student == student), None)
        if mine and len(each) > 1:
            slower = sum(speed.high < mine.low for speed in each)
            faster = sum(speed.low > mine.high for speed in each)
            yield (f"Your speed in the class ({title}): {mine.said} times torch; {faster} of {len(each) - 1} others are"
                   f" faster, {slower} slower, the rest cannot be told from yours.")  # fmt: skip


# --- dashboard --------------------------------------------------------------------------------------------------------


def class_page(assignment: str, lines: Sequence[Line], records: Records) -> str:
    """The page of a class: `lines` of its grade book, and by student the record of the submission that counts."""
    shown = class_view(assignment, lines, records) | {"signs": MARKS, "status": STATUS, "safe_name": safe_name}
    return templates.page("dashboard.html", shown, "class.js")


def class_view(assignment: str, lines: Sequence[Line], records: Records) -> dict[str, Any]:
    """What the template shows."""
    graded = {line: records[line.student] for line in lines if line.status == "graded" and line.student in records}
    columns = _columns(graded.values())
    failed = [(line, check) for line, found in graded.items() for check in found["checks"] if ending(check) == "failed"]
    return {
        "title": f"{assignment}: class", "tally": tally(lines),
        "distribution": pictures.histogram(shares_of(lines)),
        "checks": list(_checks(failed)), "mistakes": list(_mistakes(failed)), "speeds": list(_speeds(graded.values())),
        "groups": _groups(lines), "columns": list(columns.values()),
        "students": [(line, _cells(graded.get(line), columns)) for line in lines],
    }  # fmt: skip


Columns = Mapping[str, str]  # by the name of a test, without its parameters, the title of its check


def _columns(records: Iterable[Mapping[str, Any]]) -> Columns:
    titles: dict[str, str] = {}
    for check in (check for record in records for check in record["checks"]):
        titles.setdefault(check["id"].partition("[")[0], plain_title(check))
    return titles


def _cells(record: Mapping[str, Any] | None, columns: Columns) -> list[str]:
    """The outcome of each column's checks, the worst of several; "" where there is none."""
    outcomes: dict[str, set[str]] = defaultdict(set)
    for check in record["checks"] if record else ():
        outcomes[check["id"].partition("[")[0]].add(ending(check))
    return [next((one for one in MARKS if one in outcomes[name]), "") for name in columns]


Failed = Sequence[tuple[Line, Mapping[str, Any]]]


def _checks(failed: Failed) -> Iterator[dict[str, Any]]:
    for title, students, causes in by_check(failed):
        told = ", ".join(f"{one_line(cause)} {number}" for cause, number in causes.most_common())
        yield {"title": title, "failed": len(students), "causes": told, "students": students}


def _mistakes(failed: Failed) -> Iterator[dict[str, Any]]:
    """What several students got wrong alike: failures for one cause at a line of the same text, in whichever checks."""
    groups: dict[tuple[str, str], list[tuple[Line, Mapping[str, Any]]]] = defaultdict(list)
    for line, check in failed:
        if check["cause"] and check["source"]:
            groups[str(check["cause"]), "".join(str(check["source"]["text"]).split())].append((line, check))
    shared = [(cause, mine, {line.student: line for line, _ in mine}) for (cause, _), mine in groups.items()]
    for cause, mine, students in sorted(shared, key=lambda each: -len(each[2]))[:20]:
        first, *others = dict.fromkeys(str(check["title"]) for _, check in mine)
        if len(students) > 1:
            yield {
                "title": first + (f" and {counted(len(others), 'other check')}" if others else ""), "cause": cause,
                "text": shortened(one_line(str(mine[0][1]["source"]["text"])), 160),
                "students": list(students.values()),
            }  # fmt: skip


def _speeds(records: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """For each speed check and baseline: the ratios of all who were timed, and what was asked for."""
    found: dict[tuple[str, str, float], list[float]] = defaultdict(list)
    for check in (check for record in records for check in record["checks"] if "speed" in check["details"]):
        speed = check["details"]["speed"]
        for verdict in speed["verdicts"]:
            side, asked = verdict["side"], float(verdict["at_least"])
            title = f"{one_line(check['title'])}: against {SIDES[side]} at {one_line(speed['size'])}"
            found[title, side, asked].append(float(speed["ratios"][side]["value"]))
    for (title, _, asked), ratios in found.items():
        yield pictures.spread(title, ratios, asked)


def _groups(lines: Sequence[Line]) -> dict[str, list[Line]]:
    return {
        "Not graded, by no fault of theirs": [line for line in lines if line.status == "fault"],
        "Rejected": [line for line in lines if line.status == "rejected"],
        "Late": [line for line in lines if line.penalty > 0],
        "Nothing handed in": [line for line in lines if line.status == "missing"],
    }
