"""A class as one page, index.html: how points are spread, what failed and why, students by checks, and a link to each
student's report.

A pure function of the grade book's lines and the report records. The page loads nothing; its own script, allowed by
its hash, sorts, filters and searches the table of students, which reads the same without.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from gradekit.batch.feedback import safe_name
from gradekit.batch.gradebook import Line
from gradekit.batch.summary import STATUS, shares_of, tally
from gradekit.report import pictures, templates
from gradekit.report.grouping import MARKS
from gradekit.report.text import counted, one_line, points, shortened

Records = Mapping[str, Mapping[str, Any]]


def render(assignment: str, lines: Sequence[Line], records: Records, progress: str = "") -> str:
    """The page of a class: `lines` of its grade book, and the records by the digest of the submission that counts.

    `progress` says how far grading is, while it runs.
    """
    shown = view(assignment, lines, records) | {"progress": one_line(progress), "signs": MARKS}
    return templates.page("dashboard.html", shown, "class.js")


def view(assignment: str, lines: Sequence[Line], records: Records) -> dict[str, Any]:
    """What the template shows."""
    graded = {line: records[line.digest] for line in lines if line.status == "graded" and line.digest in records}
    columns = _columns(graded.values())
    failed = [
        (line, check) for line, found in graded.items() for check in found["checks"] if check["outcome"] == "failed"
    ]
    return {
        "title": f"{one_line(assignment)}: class", "tally": tally(lines),
        "distribution": pictures.histogram(shares_of(lines)),
        "checks": list(_checks(failed)), "mistakes": list(_mistakes(failed)), "speeds": list(_speeds(graded.values())),
        "groups": list(_groups(lines)), "columns": list(columns.values()),
        "students": [_row(line) | {"cells": _cells(graded.get(line), columns)} for line in lines],
    }  # fmt: skip


Columns = Mapping[str, str]
"""By the name of a test, without its parameters, the title of its check."""


def _columns(records: Iterable[Mapping[str, Any]]) -> Columns:
    titles: dict[str, str] = {}
    for check in (check for record in records for check in record["checks"]):
        name, _, case = check["id"].partition("[")
        titles.setdefault(name, one_line(check["title"].removesuffix(f"[{case}") if case else check["title"]).strip())
    return titles


def _cells(record: Mapping[str, Any] | None, columns: Columns) -> list[str]:
    """The outcome of each column's checks, the worst of several; "" where there is none."""
    outcomes: dict[str, set[str]] = defaultdict(set)
    for check in record["checks"] if record else ():
        outcomes[check["id"].partition("[")[0]].add(check["outcome"])
    return [next((one for one in MARKS if one in outcomes[name]), "") for name in columns]


def _person(line: Line) -> dict[str, str]:
    there = line.digest or line.status in ("graded", "rejected")
    link = f"feedback/{quote(safe_name(line.student))}/report.html" if there else ""
    return {"name": one_line(line.name or line.student), "link": link, "why": shortened(one_line(line.note), 160)}


def _row(line: Line) -> dict[str, str]:
    result = f"{points(line.points)} / {points(line.possible)}" if line.counts else ""
    return _person(line) | {
        "status": STATUS.get(line.status, line.status), "points": result,
        "pending": points(line.pending) if line.pending else "",
        "penalty": f"{points(line.penalty)} %" if line.penalty else "",
    }  # fmt: skip


@dataclass
class _Mistake:
    """One mistake: the line as the first of its students wrote it, who made it, and the checks that it fails."""

    text: str = ""
    students: dict[str, Line] = field(default_factory=dict)
    titles: dict[str, None] = field(default_factory=dict)


Failed = Sequence[tuple[Line, Mapping[str, Any]]]


def _checks(failed: Failed) -> Iterator[dict[str, Any]]:
    """The checks by how many failed them."""
    by_check: dict[str, list[tuple[Line, Mapping[str, Any]]]] = defaultdict(list)
    for line, check in failed:
        by_check[check["id"].partition("[")[0]].append((line, check))
    titles = _columns([{"checks": [check for _, check in failed]}])
    for name, mine in sorted(by_check.items(), key=lambda each: -len({line.student for line, _ in each[1]})):
        students = {line.student: line for line, _ in mine}
        theirs = {(str(check["cause"] or "other"), line.student) for line, check in mine}
        causes = Counter(cause for cause, _ in sorted(theirs))
        yield {
            "title": titles[name], "failed": len(students),
            "causes": ", ".join(f"{one_line(cause)} {number}" for cause, number in causes.most_common()),
            "students": list(map(_person, students.values())),
        }  # fmt: skip


def _mistakes(failed: Failed) -> Iterator[dict[str, Any]]:
    """What several students got wrong alike: failures for one cause at a line of the same text, in whichever checks."""
    groups: dict[tuple[str, str], _Mistake] = defaultdict(_Mistake)
    for line, check in failed:
        if check["cause"] and check["source"]:
            text = str(check["source"]["text"])
            mistake = groups[str(check["cause"]), "".join(text.split())]
            mistake.text = mistake.text or one_line(text)
            mistake.students[line.student] = line
            mistake.titles.setdefault(one_line(check["title"]))
    shared = [(cause, mistake) for (cause, _), mistake in groups.items() if len(mistake.students) > 1]
    for cause, mistake in sorted(shared, key=lambda each: -len(each[1].students))[:20]:
        first, *others = mistake.titles
        yield {
            "title": first + (f" and {counted(len(others), 'other check')}" if others else ""),
            "cause": one_line(cause),
            "text": shortened(mistake.text, 160), "students": [_person(line) for line in mistake.students.values()],
        }  # fmt: skip


def _speeds(records: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """For each speed check and baseline: the ratios of all who were timed, and what was asked for."""
    found: dict[tuple[str, str, float], list[float]] = defaultdict(list)
    for check in (check for record in records for check in record["checks"] if "speed" in check["details"]):
        speed = check["details"]["speed"]
        for verdict in speed["verdicts"]:
            side, asked = verdict["side"], float(verdict["at_least"])
            found[f"{one_line(check['title'])}: {side} at {one_line(speed['size'])}", side, asked].append(
                float(speed["ratios"][side]["value"])
            )
    for (title, _, asked), ratios in found.items():
        yield pictures.spread(title, ratios, asked)


def _groups(lines: Sequence[Line]) -> Iterator[dict[str, Any]]:
    """Who needs a person's attention."""
    wanted = {
        "Not graded, by no fault of theirs": [line for line in lines if line.status == "fault"],
        "Rejected": [line for line in lines if line.status == "rejected"],
        "Late": [line for line in lines if line.penalty > 0],
        "Nothing handed in": [line for line in lines if line.status == "missing"],
    }
    yield from ({"title": title, "people": list(map(_person, mine))} for title, mine in wanted.items() if mine)
