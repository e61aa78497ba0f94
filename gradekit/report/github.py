"""The report on GitHub's pages of a workflow: annotations at the lines, and a summary of the step in Markdown.

Workflow commands are lines of standard output: `::error file=F,line=N,title=T::message`, with what ends a line or a
property percent-encoded, so that no text of a submission is a command of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradekit.credit import PendingPolicy
from gradekit.report.grade import LEFT_OUT, grade
from gradekit.report.grouping import blame, ending
from gradekit.report.story import explanation, summary
from gradekit.report.text import for_markdown, one_line, points

_SIGNS = {"passed": "✅", "failed": "❌", "pending": "⏳", "fault": "⚠️", "missed": "➖", "accepted": "☑️"}


def line_errors(record: Mapping[str, Any]) -> list[str]:
    """A line for each failure that has a line in the submission, one for each reason."""
    failed = [check for check in record["checks"] if check["source"] and ending(check) == "failed"]
    first = {blame(check): check for check in reversed(failed)}
    told = [(check, explanation(check, record["submission"]), check["title"]) for check in reversed(first.values())]
    if record["status"] == "rejected" and record["source"]:
        told = [(record, record["message"], "Rejected")]
    return [
        f"::error file={_property(record['submission']['path'])},line={owner['source']['line']},"
        f"title={_property(one_line(title))}::{_data(text)}"
        for owner, text, title in told
    ]  # fmt: skip


def step_summary(record: Mapping[str, Any], pending: PendingPolicy = LEFT_OUT) -> str:
    """The summary: the score, what is pending, and a row for each check."""
    graded = grade(record, pending)
    lines = [f"### {for_markdown(record['assignment'])}", "", *map(for_markdown, summary(record, graded).splitlines())]
    if record["checks"]:
        lines += ["", "| | check | points |", "|---|---|---|"]
    for check in record["checks"]:
        worth = f"{points(check['earned'])} / {points(check['possible'])}"
        lines += [f"| {_SIGNS[ending(check)]} | {for_markdown(check['title'])} | {worth} |"]
    return "\n".join(lines) + "\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
