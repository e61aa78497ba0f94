"""The record is the Report as plain JSON data; its schema and its documentation say the same."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gradekit.findings import Cause, Kind, Outcome, Status
from gradekit.report.record import RecordError, dumps, from_dict, plain, schema, to_dict, validate, write

from .samples import FAILED, FAULT, PASSED, PENDING, REJECTED, record, report

DOCS = Path(__file__).parent.parent.parent / "docs" / "report.md"


def test_a_report_comes_out_of_its_record_the_same_again() -> None:
    for whole in (report(PASSED, FAILED, PENDING, FAULT), report(PASSED, **REJECTED)):
        assert from_dict(json.loads(dumps(to_dict(whole)))) == whole


def test_a_graded_report_is_this_record() -> None:
    data = record(PASSED, FAILED, PENDING)
    assert data == {
        "schema": "gradekit/report/1", "assignment": "softmax", "status": "graded", "message": "", "cause": None,
        "hint": "", "source": None, "submission": {"path": "submission.py", "sha256": "ab" * 32, "cells": []},
        "score": {"earned": 40, "possible": 100, "pending": 30}, "checks": data["checks"], "notes": [],
        "environment": {"gradekit": "0.1.0", "python": "3.12.1", "torch": "2.13.0", "triton": "3.9.0", "gpu": None},
        "seed": 7, "seconds": 3.21,
    }  # fmt: skip
    assert data["checks"][1] == {
        "id": "test_matches_torch", "title": "Agrees with torch.softmax on any shape, dtype and stride",
        "kind": "correctness", "outcome": "failed", "earned": 0, "possible": 30, "bonus": False,
        "message": "At shape [1, 33], float32: 1 of 33 elements is wrong, first at [0, 32].", "cause": "missing-mask",
        "hint": "compute mask = offsets < n, and pass it to tl.load and tl.store",
        "source": {"line": 14, "text": "    x = tl.load(x_ptr + offs)"}, "counterexample": FAILED.counterexample,
        "details": {},
    }  # fmt: skip


@pytest.mark.parametrize(
    "data",
    [record(), record(PASSED, FAILED, PENDING, FAULT), record(**REJECTED), record(status=Status.FAULT, message="oh")],
    ids=["empty", "graded", "rejected", "fault"],
)
def test_every_kind_of_report_is_valid_and_survives_json(data: dict[str, Any]) -> None:
    validate(data)
    assert json.loads(dumps(data)) == data


def test_what_json_has_no_name_for_becomes_text() -> None:
    value = {1: (float("inf"), float("-inf"), float("nan")), "cause": Cause.NAN, "path": Path("a/b"), "n": True}
    assert plain(value) == {"1": ["inf", "-inf", "nan"], "cause": "nan", "path": "a/b", "n": True}


@pytest.mark.parametrize(("change", "said"), [
    ({"status": "good"}, "status: 'good' is not one of"),
    ({"score": {"earned": -1, "possible": 1, "pending": 0}}, "score.earned: -1 is less than the minimum"),
    ({"extra": 1}, "the record: Additional properties are not allowed"),
    ({"checks": [{"id": "x"}]}, "checks[0]: 'title' is a required property"),
])
def test_what_is_no_record_is_refused_by_field(change: dict[str, Any], said: str) -> None:
    with pytest.raises(RecordError) as caught:
        validate(record() | change)
    assert said in str(caught.value)


def test_the_schemas_vocabularies_are_those_of_the_findings() -> None:
    check = schema()["$defs"]["check"]["properties"]
    assert schema()["properties"]["status"]["enum"] == [s.value for s in Status]
    assert check["kind"]["enum"] == [k.value for k in Kind]
    assert check["outcome"]["enum"] == [o.value for o in Outcome]
    assert schema()["$defs"]["cause"]["enum"] == [None, *(c.value for c in Cause)]


# --- its documentation ------------------------------------------------------------------------------------------------


def fields(node: dict[str, Any], path: str = "") -> Iterator[str]:
    """The paths of all fields that the schema node describes, such as checks[].source.line."""
    if "$ref" in node:
        node = schema()["$defs"][node["$ref"].rsplit("/", 1)[1]]
    for option in node.get("oneOf", []):
        yield from fields(option, path)
    if isinstance(node.get("items"), dict) and "minItems" not in node:
        yield from fields(node["items"], f"{path}[]")
    for name, inner in node.get("properties", {}).items():
        here = f"{path}.{name}" if path else name
        yield here
        yield from fields(inner, here)


def test_every_field_is_documented_and_every_documented_field_exists() -> None:
    tables, _, _ = DOCS.read_text().partition("## Causes")
    documented = re.findall(r"^\| `([^`]+)` \|", tables, re.MULTILINE)
    assert sorted(documented) == sorted(set(fields(schema())))


def test_every_cause_is_documented_in_order() -> None:
    table = DOCS.read_text().partition("<!-- causes: begin -->")[2].partition("<!-- causes: end -->")[0]
    assert re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE) == [cause.value for cause in Cause]


# --- its file ---------------------------------------------------------------------------------------------------------


def test_the_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    write("old\n", path)
    write("new\n", path)
    assert path.read_text() == "new\n"
    assert [file.name for file in tmp_path.iterdir()] == ["report.json"]


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object) -> None:
        raise OSError("disk full")

    path = tmp_path / "report.json"
    write("old\n", path)
    monkeypatch.setattr("os.replace", broken)
    with pytest.raises(OSError, match="disk full"):
        write("new\n", path)
    assert path.read_text() == "old\n"
    assert [file.name for file in tmp_path.iterdir()] == ["report.json"]


def test_the_file_can_be_read_by_others_as_the_umask_allows(tmp_path: Path) -> None:
    write("x", tmp_path / "report.json")
    (tmp_path / "plain").write_text("x")
    assert (tmp_path / "report.json").stat().st_mode == (tmp_path / "plain").stat().st_mode
