"""The report as Gradescope's results.json: a pure function of the record.

The contract is docs/specs.md of gradescope/autograder_samples. Keys are left out, never null; a test's status is passed
or failed and nothing else, so a pending check stands there without status and score; the score of the whole says what
it counts. A fault of the grader has no score
at all: Gradescope then says that the autograder failed, which is true, and nobody gets a zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradekit.report.grade import Grade
from gradekit.report.grouping import blame, ending, is_right
from gradekit.report.pictures import wrong_image
from gradekit.report.plain_text import as_html, summary
from gradekit.report.text import one_line

HIDDEN = "after_published"
"""When Gradescope shows what hidden tests found."""


def render(graded: Grade) -> dict[str, Any]:
    """results.json as data."""
    record = graded.record
    results: dict[str, Any] = {
        "output": summary(graded), "output_format": "text", "execution_time": record["seconds"],
        "stdout_visibility": "hidden",
    }  # fmt: skip
    if record["status"] == "fault":
        return results
    if not graded.is_open:
        results["score"] = graded.points
    results["tests"] = _tests(record)
    if (ratio := over_compiled(record)) is not None:
        results["leaderboard"] = [{"name": "Speed over torch.compile", "value": ratio, "order": "desc"}]
    return results


def _tests(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The tests; of those that failed for one reason, the first tells it, and the others name that one."""
    tests, told = [], dict[Any, str]()
    for number, check in enumerate(record["checks"], start=1):
        reason = (blame(check), check["details"].get("hidden")) if ending(check) == "failed" else number
        same = told.get(reason)
        output = f"<p>For the same reason as test {same}.</p>" if same else _story(check, record["submission"])
        told.setdefault(reason, str(number))
        tests.append(_test(check, str(number), output))
    return tests


def _story(check: Mapping[str, Any], submission: Mapping[str, Any]) -> str:
    picture = wrong_image(check["details"]) if ending(check) == "failed" else ""
    return as_html(check, submission) + picture


def _test(check: Mapping[str, Any], number: str, output: str) -> dict[str, Any]:
    test: dict[str, Any] = {
        "name": _name(check),
        "number": number,
        "name_format": "text",
        "output_format": "html",
        "tags": [check["kind"]],
    }
    test |= {"output": output} if output else {}
    if check["outcome"] in ("passed", "failed"):
        test |= {"score": check["earned"], "max_score": check["possible"]}
        test |= {"status": check["outcome"]} if ending(check) != "accepted" else {}
    if check["details"].get("hidden"):
        test["visibility"] = HIDDEN
    return test


def _name(check: Mapping[str, Any]) -> str:
    title = one_line(check["title"]) or one_line(check["id"])
    word = {"pending": "pending: ", "fault": "not graded: "}.get(check["outcome"], "")
    return word + title


def over_compiled(record: Mapping[str, Any]) -> float | None:
    """The least of the measured speeds of a right kernel over torch.compile, to three digits; None where there is
    none."""
    ratios = [check["details"].get("speed", {}).get("ratios", {}).get("compiled", {}) for check in record["checks"]]
    values = [round(ratio["value"], 3) for ratio in ratios if "value" in ratio]
    return min(values, default=None) if is_right(record) else None
