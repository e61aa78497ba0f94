"""The report at GitHub: for Classroom's autograding reporter, as annotations at the lines, and as a summary of the step
in Markdown. Pure functions of the record.

The reporter's contract is version 3 of the JSON that the classroom-resources runners put out: base64 of one line of
JSON, read from the variable STEP-ID_RESULTS. Partial credit survives only in the score of each test. Workflow commands
are lines of standard output: `::error file=F,line=N,title=T::message`, with what ends a line or a property
percent-encoded, so that no text of a submission is a command of its own.
"""

import base64
import json
from collections.abc import Mapping
from typing import Any

from gradekit.report.grade import LEFT_OUT, Grade
from gradekit.report.grouping import blame, ending
from gradekit.report.plain_text import explanation, summary
from gradekit.report.text import for_markdown, one_line, points

_STATUS = {"passed": "pass", "failed": "fail", "pending": "pass", "fault": "error"}


def render(graded: Grade) -> dict[str, Any]:
    """The results as data. `tests` is never missing: the reporter breaks without it.

    The reporter sums tests up, and a test may be worth nothing: points that are left out are neither earned nor
    possible here.
    """
    record, said = graded.record, summary(graded)
    if record["status"] == "fault":
        return _results("error", 0.0, [_whole(record, "error", said)], said)
    if record["status"] == "rejected":
        return _results("fail", record["score"]["possible"], [_whole(record, "fail", said)], said)
    tests = [_test(check, record["submission"], graded) for check in record["checks"]]
    status = "fail" if any(test["status"] == "fail" for test in tests) else "pass"
    left_out = graded.pending if graded.policy is LEFT_OUT else 0.0
    return _results(status, graded.possible - left_out, tests, graded.said)


def encoded(graded: Grade) -> str:
    """What the step puts out as `result`."""
    line = json.dumps(render(graded), allow_nan=False, separators=(",", ":")) + "\n"
    return base64.b64encode(line.encode()).decode()


def _results(status: str, most: float, tests: list[dict[str, Any]], message: str = "") -> dict[str, Any]:
    results: dict[str, Any] = {"version": 3, "status": status, "max_score": most, "tests": tests}
    return results | ({"message": message} if message else {})


def _whole(record: Mapping[str, Any], status: str, said: str) -> dict[str, Any]:
    line = record["source"]["line"] if record["source"] else 0
    return _entry("submission", status, 0.0, said, line)


def _test(check: Mapping[str, Any], submission: Mapping[str, Any], graded: Grade) -> dict[str, Any]:
    word = {"pending": "pending - ", "fault": "not graded - "}.get(check["outcome"], "")
    line = check["source"]["line"] if check["source"] else 0
    name = word + (one_line(check["title"]) or one_line(check["id"]))
    score = check["earned"] if graded.policy is LEFT_OUT else graded.of(check)
    return _entry(name, _STATUS.get(ending(check), "pass"), score, explanation(check, submission), line)


def _entry(name: str, status: str, score: float, message: str, line: int) -> dict[str, Any]:
    return {
        "name": name, "status": status, "score": score, "message": message, "test_code": "", "task_id": 0,
        "filename": "", "line_no": line, "duration": 0,
    }  # fmt: skip


# --- the workflow's pages ---------------------------------------------------------------------------------------------

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


def step_summary(graded: Grade) -> str:
    """The summary: the score, what is pending, and a row for each check."""
    record = graded.record
    lines = [f"### {for_markdown(record['assignment'])}", "", *map(for_markdown, summary(graded).splitlines())]
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
