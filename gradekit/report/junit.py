"""The report as JUnit XML, for continuous integration: a pure function of the record.

A failed check is a failure, a pending one is skipped, a fault is an error. A submission that was rejected is one failed
test case of its own, so that no reader of the file takes an empty list of tests for a success.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

from gradekit.report.grouping import ending
from gradekit.report.speed_sentences import sentences
from gradekit.report.text import clean, described, located, one_line, points
from gradekit.submission import place

_ELEMENTS = {"failed": "failure", "pending": "skipped", "fault": "error"}
_WHOLE = {"rejected": "failed", "fault": "fault"}


def render(record: Mapping[str, Any]) -> str:
    """The record as an XML document with one test suite."""
    cases = [_whole(record)] if record["status"] in _WHOLE else []
    cases += [_case(record["assignment"], check, record["submission"]) for check in record["checks"]]
    suite = ElementTree.Element("testsuite", _totals(record, cases))
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in record["score"].items():
        ElementTree.SubElement(properties, "property", name=f"points.{name}", value=points(value))
    suite.extend(cases)
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _totals(record: Mapping[str, Any], cases: list[ElementTree.Element]) -> dict[str, str]:
    counts = {plural: sum(case.find(name) is not None for case in cases) for plural, name in _COUNTED.items()}
    name = f"gradekit.{_text(record['assignment']) or 'unknown'}"
    return {"name": name, "tests": str(len(cases)), "time": f"{record['seconds']:.3f}"} | {
        plural: str(count) for plural, count in counts.items()
    }


_COUNTED = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def _whole(record: Mapping[str, Any]) -> ElementTree.Element:
    case = ElementTree.Element("testcase", classname=_text(record["assignment"]), name="submission")
    _add(case, _WHOLE[record["status"]], record, record["submission"])
    return case


def _case(assignment: str, check: Mapping[str, Any], submission: Mapping[str, Any]) -> ElementTree.Element:
    case = ElementTree.Element("testcase", classname=_text(assignment), name=_text(check["id"]))
    properties = ElementTree.SubElement(case, "properties")
    for name in ("title", "kind", "earned", "possible"):
        ElementTree.SubElement(properties, "property", name=name, value=_text(str(check[name])))
    for sentence in sentences(check["details"]["speed"]) if "speed" in check["details"] else ():
        ElementTree.SubElement(properties, "property", name="speed", value=_text(sentence))
    if ending(check) in _ELEMENTS:
        _add(case, ending(check), check, submission)
    return case


def _add(case: ElementTree.Element, outcome: str, owner: Mapping[str, Any], submission: Mapping[str, Any]) -> None:
    element = ElementTree.SubElement(
        case, _ELEMENTS[outcome], message=one_line(_text(located(owner["message"], submission)))
    )
    if owner["cause"] and outcome != "pending":
        element.set("type", owner["cause"])
    element.text = "\n".join(_evidence(owner, submission)) or None


def _evidence(owner: Mapping[str, Any], submission: Mapping[str, Any]) -> list[str]:
    lines = []
    if owner["source"]:
        lines.append(f"{place(submission, owner['source']['line'])}: {owner['source']['text'].strip()}")
    counterexample = owner.get("counterexample") or {}
    lines += [described(given) for given in counterexample.get("inputs", ())]
    lines += [counterexample["replay"]] if counterexample.get("replay") else []
    return [_text(line) for line in lines]


def _text(text: str) -> str:
    """`text` without what XML 1.0 cannot hold: most control characters, and U+FFFE and U+FFFF."""
    return clean(text).replace("\ufffe", "").replace("\uffff", "")
