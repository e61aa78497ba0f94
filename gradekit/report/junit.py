"""The report as JUnit XML, for continuous integration: a pure function of the record.

A failed check is a failure, a pending one is skipped, a fault is an error. A submission that was rejected is one failed
test case of its own, so that no reader of the file takes an empty list of tests for a success.
"""

from collections.abc import Mapping
from typing import Any

from gradekit.report import templates
from gradekit.report.grouping import ending
from gradekit.report.plain_text import where
from gradekit.report.speed_sentences import sentences
from gradekit.report.text import described, located, one_line

_ELEMENTS = {"failed": "failure", "pending": "skipped", "fault": "error"}
_WHOLE = {"rejected": "failed", "fault": "fault"}


def render(record: Mapping[str, Any]) -> str:
    """The record as an XML document with one test suite."""
    whole, submission = _WHOLE.get(record["status"]), record["submission"]
    cases = [_case({"id": "submission", "facts": ()}, whole, record, submission)] if whole else []
    for check in record["checks"]:
        facts = [(name, check[name]) for name in ("title", "kind", "earned", "possible")]
        if "speed" in check["details"]:
            facts += [("speed", said) for said in sentences(check["details"]["speed"])]
        cases.append(_case({"id": check["id"], "facts": facts}, ending(check), check, submission))
    template = templates.environment().get_template("junit.xml")
    return template.render(record=record, cases=cases, elements=[case["element"] for case in cases]) + "\n"


def _case(
    case: dict[str, Any], outcome: str, owner: Mapping[str, Any], submission: Mapping[str, Any]
) -> dict[str, Any]:  # fmt: skip
    example = owner.get("counterexample") or {}
    evidence = [where(owner, submission), *map(described, example.get("inputs", ())), example.get("replay", "")]
    return {
        **case, "element": _ELEMENTS.get(outcome, ""), "message": one_line(located(owner["message"], submission)),
        "cause": owner["cause"] if outcome != "pending" else "", "evidence": "\n".join(filter(None, evidence)),
    }  # fmt: skip
