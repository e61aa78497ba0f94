"""The report as CodeGrade's AutoTest v2 reads it: lines of JSON with the checks, and one with the points."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from gradekit.credit import PendingPolicy
from gradekit.report.grade import LEFT_OUT, grade
from gradekit.report.grouping import ending
from gradekit.report.story import explanation, summary
from gradekit.report.text import one_line

_STATUS = {"failed": "failure", "pending": "skipped", "fault": "skipped"}
PRECISION = 10**6


def render(record: Mapping[str, Any], pending: PendingPolicy = LEFT_OUT) -> str:
    """The lines; without points where the grader failed or nothing was measured."""
    graded = grade(record, pending)
    cases = [_case(check, record["submission"]) for check in record["checks"]] or [
        {"name": "submission", "status": "skipped" if record["status"] == "fault" else "failure",
         "reason": summary(record, graded)}
    ]  # fmt: skip
    suite = {"id": "gradekit", "name": one_line(record["assignment"]) or "gradekit", "testCases": cases}
    lines: list[dict[str, Any]] = [{"tag": "unit-test", "results": [suite]}]
    if record["status"] != "fault" and not graded.is_open:
        lines += [{"tag": "points", "points": str(Fraction(round(graded.part * PRECISION), PRECISION))}]
    return "".join(json.dumps(line, allow_nan=False, separators=(",", ":")) + "\n" for line in lines)


def _case(check: Mapping[str, Any], submission: Mapping[str, Any]) -> dict[str, Any]:
    case = {"name": one_line(check["title"]) or one_line(check["id"]), "status": _STATUS.get(ending(check), "success")}
    reason = explanation(check, submission)
    weight = str(Fraction(check["possible"]).limit_denominator())
    return case | {"weight": weight} | ({"reason": reason} if reason else {})
