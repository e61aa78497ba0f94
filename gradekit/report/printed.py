"""The report as what an LMS reads from standard output: Autolab, Moodle's VPL and CodeRunner, CodeGrade.

Each is a pure function of a record's grade. Where there is none, since the grader failed or nothing could be measured,
there is none in the text either: an LMS then keeps the one that it has, or shows a fault.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from gradekit.report.grade import Grade
from gradekit.report.gradescope import over_compiled
from gradekit.report.grouping import ending
from gradekit.report.plain_text import as_html, explanation, summary
from gradekit.report.text import for_html, one_line, points

Record = Mapping[str, Any]


def _headed(record: Record) -> Iterable[tuple[Mapping[str, Any], str]]:
    """Each check with its line: "[failed] Is right (0 / 30)"."""
    for check in record["checks"]:
        worth = f"{points(check['earned'])} / {points(check['possible'])}"
        yield check, f"[{check['outcome']}] {one_line(check['title'])} ({worth})"


# --- Autolab: feedback lines, and last of all one line of scores ------------------------------------------------------

_REWRITTEN = re.compile(r"([a-zA-Z0-9]+):")
"""What the server rewrites in the last line before it decodes it (docs/lab.md of Autolab), also in a string: the names
of problems are the kinds of checks, which have no colon."""

KINDS = ("correctness", "memory", "structure", "speed", "quiz")


def autolab(graded: Grade) -> str:
    """The text for standard output, ending in the line of scores."""
    record, lines = graded.record, [summary(graded), ""]
    for check, head in _headed(record):
        lines += [head, *(f"    {line}" for line in explanation(check, record["submission"]).splitlines())]
    scores = [_scores(graded)] if graded.is_given else []
    return "\n".join([*lines, "", *scores]) + "\n"


def problems(graded: Grade) -> dict[str, float]:
    """What the checks count by their kinds, which are the names of the problems that the lab must define."""
    by_kind = {kind: [check for check in graded.record["checks"] if check["kind"] == kind] for kind in KINDS}
    return {kind.capitalize(): round(sum(map(graded.of, mine)), 4) for kind, mine in by_kind.items() if mine}


def _scores(graded: Grade) -> str:
    """One line of JSON without `alnum:` in it: a key's colon follows its quote, and no name holds one."""
    ratio = over_compiled(graded.record)
    board = [round(graded.points, 4), *([] if ratio is None else [ratio])]
    line = json.dumps({"scores": problems(graded), "scoreboard": board}, allow_nan=False)
    assert not _REWRITTEN.search(line), line
    return line


# --- Moodle: a comment and a grade; a fraction and feedback -----------------------------------------------------------


def vpl(graded: Grade, most: float = 100.0) -> str:
    """A comment between `<|--` and `--|>`, and a line with the grade, of at most `most`.

    In a comment, a line that begins with `-` is a heading, and one with `>` is shown as it is: every line from the
    submission gets a `>`, so that none of them can be a grade.
    """
    record, lines = graded.record, ["<|--", *(f">{line}" for line in summary(graded).splitlines())]
    for check, head in _headed(record):
        lines += [f"-{head}", *(f">{line}" for line in explanation(check, record["submission"]).splitlines())]
    found = [f"Grade :=>> {most * graded.part:.5f}"] if graded.is_given else []
    return "\n".join([*lines, "--|>", *found]) + "\n"


def coderunner(graded: Grade) -> str:
    """The answer of a template grader: a JSON object with the fraction and the feedback.

    A fault of the grader is no such object: CodeRunner shows the text as an error, and counts 0 until somebody regrades
    it.
    """
    record, said = graded.record, summary(graded)
    if not graded.is_given:
        return f"gradekit has no grade: {one_line(said)}\n"
    parts = [f"<p>{for_html(line)}</p>" for line in said.splitlines()]
    for check, head in _headed(record):
        parts += [f"<h5>{for_html(head)}</h5>", as_html(check, record["submission"])]
    return json.dumps({"fraction": round(graded.part, 6), "prologuehtml": "".join(parts)}, allow_nan=False) + "\n"


# --- CodeGrade's AutoTest v2: lines of JSON with the checks, and one with the points ----------------------------------

_STATUS = {"failed": "failure", "pending": "skipped", "fault": "skipped"}


def codegrade(graded: Grade) -> str:
    """The lines of its structured output."""
    record = graded.record
    cases = [_case(check, record["submission"]) for check in record["checks"]] or [
        {"name": "submission", "status": "skipped" if record["status"] == "fault" else "failure",
         "reason": summary(graded)}
    ]  # fmt: skip
    suite = {"id": "gradekit", "name": one_line(record["assignment"]) or "gradekit", "testCases": cases}
    lines: list[dict[str, Any]] = [{"tag": "unit-test", "results": [suite]}]
    if graded.is_given:
        lines += [{"tag": "points", "points": str(Fraction(graded.part).limit_denominator())}]
    return "".join(json.dumps(line, allow_nan=False, separators=(",", ":")) + "\n" for line in lines)


def _case(check: Mapping[str, Any], submission: Mapping[str, Any]) -> dict[str, Any]:
    case = {"name": one_line(check["title"]) or one_line(check["id"]), "status": _STATUS.get(ending(check), "success")}
    reason = explanation(check, submission)
    weight = str(Fraction(check["possible"]).limit_denominator())
    return case | {"weight": weight} | ({"reason": reason} if reason else {})
