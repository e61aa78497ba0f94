"""The report as the answer of a CodeRunner template grader (Moodle): a JSON object with the fraction and the feedback.

A fault of the grader is no such object: CodeRunner shows the text as an error, and counts 0 until somebody regrades it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gradekit.credit import PendingPolicy
from gradekit.report.grade import LEFT_OUT, grade
from gradekit.report.story import as_html, summary
from gradekit.report.text import for_html, one_line, points


def render(record: Mapping[str, Any], pending: PendingPolicy = LEFT_OUT) -> str:
    """The line for standard output."""
    graded = grade(record, pending)
    said = summary(record, graded)
    if record["status"] == "fault" or graded.is_open:
        return f"gradekit has no grade: {one_line(said)}\n"
    parts = [f"<p>{for_html(line)}</p>" for line in said.splitlines()]
    for check in record["checks"]:
        worth = f"{points(check['earned'])} / {points(check['possible'])}"
        parts += [f"<h5>{for_html(one_line(check['title']))}: {check['outcome']}, {worth}</h5>"]
        parts += [as_html(check, record["submission"])]
    answer = {"fraction": round(graded.part, 6), "prologuehtml": "".join(parts)}
    return json.dumps(answer, allow_nan=False) + "\n"
