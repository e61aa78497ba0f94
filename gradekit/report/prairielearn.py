"""The report as PrairieLearn's results.json: a pure function of the record.

The contract is docs/externalGrading.md of PrairieLearn. The score is a share from 0 to 1, every test has points and
max_points (one without them would hide the points of all), and the file must stay under 1 MiB.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gradekit.report.grade import Grade
from gradekit.report.plain_text import explanation, summary
from gradekit.report.text import one_line

LARGEST = 1024 * 1024
"""Bytes of results.json from which PrairieLearn fails the job."""


def render(graded: Grade) -> dict[str, Any]:
    """results.json as data, small enough for PrairieLearn.

    A submission that was rejected is gradable and worth 0. Where the grader failed, or nothing could be measured, it is
    not gradable: no attempt is used up.
    """
    record, said = graded.record, summary(graded)
    if not graded.is_given:
        return {"gradable": False, "format_errors": [said], "message": said}
    results = {
        "gradable": True,
        "score": graded.part,
        "max_points": graded.possible,
        "output": said,
        "tests": [_test(check, record["submission"]) for check in record["checks"]],
    }
    return _fitting(results)


def _test(check: Mapping[str, Any], submission: Mapping[str, Any]) -> dict[str, Any]:
    waiting = check["outcome"] in ("pending", "fault")
    return {
        "name": one_line(check["title"]) or one_line(check["id"]),
        "points": check["earned"],
        "max_points": 0 if waiting else check["possible"],  # 0 of 0 is drawn grey, and is no loss
        "message": "pending: not measured yet" if waiting else "",
        "output": explanation(check, submission),
    }


def _fitting(results: dict[str, Any]) -> dict[str, Any]:
    """`results`, with the longest explanations cut until they fit."""
    longest = max((len(test["output"]) for test in results["tests"]), default=0)
    while longest > 16 and len(json.dumps(results).encode()) >= LARGEST:
        longest //= 2
        for test in results["tests"]:
            test["output"] = test["output"][:longest]
    return results
