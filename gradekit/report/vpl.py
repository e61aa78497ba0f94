"""The report as Moodle's VPL reads it from standard output: a comment, and a line with the grade.

A comment stands between `<|--` and `--|>`; in it, a line that begins with `-` is a heading, and one with `>` is shown
as it is. Every line from the submission gets a `>`, so that none of them can be a grade.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gradekit.credit import PendingPolicy
from gradekit.report.grade import LEFT_OUT, grade
from gradekit.report.story import explanation, summary
from gradekit.report.text import one_line, points


def render(record: Mapping[str, Any], pending: PendingPolicy = LEFT_OUT, most: float = 100.0) -> str:
    """The text, with a grade of at most `most`; without one where the grader failed or nothing was measured."""
    graded = grade(record, pending)
    lines = ["<|--", *_quoted(summary(record, graded))]
    for check in record["checks"]:
        worth = f"{points(check['earned'])} / {points(check['possible'])}"
        lines += [f"-[{check['outcome']}] {one_line(check['title'])} ({worth})"]
        lines += _quoted(explanation(check, record["submission"]))
    lines += ["--|>"]
    if record["status"] != "fault" and not graded.is_open:
        lines += [f"Grade :=>> {most * graded.part:.5f}"]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> Iterable[str]:
    return (f">{line}" for line in text.splitlines())
