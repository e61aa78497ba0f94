"""The report as GitHub Classroom's autograding reporter takes it: a pure function of the record.

The contract is version 3 of the JSON that the classroom-resources runners put out: base64 of one line of JSON, read
from the variable STEP-ID_RESULTS. Partial credit survives only in the score of each test.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from gradekit.report.story import explanation, summary
from gradekit.report.text import one_line

_STATUS = {"passed": "pass", "failed": "fail", "pending": "pass", "fault": "error"}


def render(record: Mapping[str, Any]) -> dict[str, Any]:
    """The results as data. `tests` is never missing: the reporter breaks without it."""
    if record["status"] == "fault":
        return _results("error", 0.0, [_whole(record, "error")], summary(record))
    if record["status"] == "rejected":
        return _results("fail", record["score"]["possible"], [_whole(record, "fail")], summary(record))
    tests = [_test(check, record["submission"]) for check in record["checks"]]
    status = "fail" if any(test["status"] == "fail" for test in tests) else "pass"
    return _results(status, record["score"]["possible"] - record["score"]["pending"], tests)


def encoded(record: Mapping[str, Any]) -> str:
    """What the step puts out as `result`."""
    line = json.dumps(render(record), allow_nan=False, separators=(",", ":")) + "\n"
    return base64.b64encode(line.encode()).decode()


def _results(status: str, most: float, tests: list[dict[str, Any]], message: str = "") -> dict[str, Any]:
    results: dict[str, Any] = {"version": 3, "status": status, "max_score": most, "tests": tests}
    return results | ({"message": message} if message else {})


def _whole(record: Mapping[str, Any], status: str) -> dict[str, Any]:
    line = record["source"]["line"] if record["source"] else 0
    return _entry("submission", status, 0.0, summary(record), line)


def _test(check: Mapping[str, Any], submission: Mapping[str, Any]) -> dict[str, Any]:
    word = {"pending": "pending - ", "fault": "not graded - "}.get(check["outcome"], "")
    line = check["source"]["line"] if check["source"] else 0
    name = word + (one_line(check["title"]) or one_line(check["id"]))
    return _entry(name, _STATUS[check["outcome"]], check["earned"], explanation(check, submission), line)


def _entry(name: str, status: str, score: float, message: str, line: int) -> dict[str, Any]:
    return {
        "name": name, "status": status, "score": score, "message": message, "test_code": "", "task_id": 0,
        "filename": "", "line_no": line, "duration": 0,
    }  # fmt: skip
