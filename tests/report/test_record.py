"""The record is the Report as plain JSON data: its schema and its documentation say the same, and it says what it rests on."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gradekit.findings import Cause, Kind, Outcome, SourceLine, Status
from gradekit.report import proofs
from gradekit.report.changes import changes, sentence
from gradekit.report.proofs import OPEN, summary
from gradekit.report.record import dumps, from_dict, plain, schema, to_dict, validate, write
from gradekit.report.rests_on import in_words, not_seen, rests_on, unsure
from gradekit.report.terminal import Look, render

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
    with pytest.raises(ValueError, match=re.escape(said)):
        validate(record() | change)


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


# --- What a record rests on -------------------------------------------------------------------------------------------


def check(outcome: str = "passed", **details: Any) -> dict[str, Any]:
    return {"outcome": outcome, "details": details}


UNSEEN = {"line": 7, "what": "N % 251 == 250 is true"}


def met(line: int, seen: list[str], unseen: list[str]) -> dict[str, Any]:
    return {"branches": {"decisions": [{"line": line, "seen": seen, "unseen": unseen}]}}


FORMS = {"forms": 3, "exact": 2, "not": ["its inputs share memory"]}
CHECKS = [
    check(examples=12, exact=FORMS, coverage=met(7, ["N < 5 is true"], ["N < 5 is false", UNSEEN["what"]])),
    check(examples=5, coverage=met(7, ["N < 5 is false"], ["N < 5 is true", UNSEEN["what"]])),
    check(proofs={"softmax": {"proved": 9, "open": 1, "refuted": 0}}),
]


def test_what_was_proved_tried_covered_and_not_seen_is_summed_up() -> None:
    found = {"proved": 9, "open": 1, "exact": 2, "not_exact": 1, "examples": 17, "unseen": [UNSEEN]}
    assert rests_on(CHECKS) == found


def test_a_record_with_a_failure_rests_on_nothing() -> None:
    assert rests_on([*CHECKS, check("failed")]) == rests_on([check()]) == {}
    assert (in_words({}), unsure({}), summary({})) == ("", [], "")


def test_a_line_says_it_and_what_nothing_has_looked_at_is_named() -> None:
    unfollowed = {"line": 4, "what": "text made of a size"}
    record = {"rests_on": rests_on([*CHECKS, check(coverage={"branches": {"unfollowed": [unfollowed]}})])}
    assert in_words(record) == (
        "This score rests on 17 examples, 9 claims proved, 2 formulas right in exact arithmetic."
    )
    assert not_seen(record) == "Left open, and nothing for you to change: line 4: text made of a size (and 1 more)."
    alone = {"rests_on": {"unseen": [UNSEEN]}}
    assert not_seen(alone) == (
        "Left open, and nothing for you to change: line 7: no call in which N % 251 == 250 is true."
    )
    failed = {"checks": [{"details": {"coverage": {"branches": {"unfollowed": [unfollowed]}}}}]}
    assert not_seen(failed) == "Left open: line 4: text made of a size.", "what failed may stand there"
    assert not_seen({}) == ""
    assert unsure(record) == ["line 4: text made of a size", "line 7: no call in which N % 251 == 250 is true"]


def test_a_terminal_names_what_could_not_be_looked_at() -> None:
    untried = {"line": None, "what": "further calls could not be worked out, by no fault of yours (IndexError)"}
    seen = replace(PASSED, details={"coverage": {"branches": {"untried": [untried]}}})
    shown = render(record(seen), Look(width=200))
    assert f"Left open, and nothing for you to change: {untried['what']}." in shown
    assert "Left open" not in render(record(PASSED), Look(width=200))


def test_what_one_check_has_seen_is_seen_and_the_same_words_of_another_line_are_not() -> None:
    other = check(coverage=met(9, [], ["N < 5 is true"]))
    assert rests_on([*CHECKS, other])["unseen"] == [UNSEEN, {"line": 9, "what": "N < 5 is true"}]


def test_of_a_submission_that_fails_what_nothing_follows_is_named_alone() -> None:
    unfollowed = check(coverage={"branches": {"unfollowed": [{"line": 4, "what": "text made of a size"}]}})
    assert unsure({"checks": [*CHECKS, unfollowed, check("failed")]}) == ["line 4: text made of a size"]


# --- what a memory check's line says of its proofs --------------------------------------------------------------------


ALL = {"proved": 6, "refuted": 0, "open": 0, "claims": [], "largest": {"N": 2145386495}}


def _details(**changes: Any) -> dict[str, Any]:
    return {"proofs": {"add": ALL | changes}}


@pytest.mark.parametrize(("changes", "said"), [
    ({}, "proved for every N up to 2,145,386,495"),
    ({"largest": {"M": 65535, "N": 4096}}, "proved for every M up to 65,535 and every N up to 4,096"),
    ({"largest": {"M": 9, "N": 9, "K": 9}}, "proved for all sizes"),
    ({"largest": {"size 0": 9}}, "proved for all sizes"),
    ({"unseen": {"N": 7}}, "proved for every N up to 2,145,386,495, where host code was followed"),
    ({"gaps": ["no"]}, "proved for every N up to 2,145,386,495, where host code was followed"),
    ({"open": 2}, "6 of 8 claims proved for all sizes"),
    ({"refuted": 1}, ""),
    ({"proved": 0, "open": 3}, ""),
])
def test_the_summary_says_no_more_than_was_proved(changes, said):
    assert summary(_details(**changes)) == said


def test_a_passed_check_says_it_on_its_line_and_a_failed_one_does_not() -> None:
    check = replace(PASSED, title="Stays inside its tensors", details=_details())
    lines = render(record(check), Look(width=120)).splitlines()
    assert any("Stays inside its tensors (proved for every N up to 2,145,386,495)" in line for line in lines)
    assert "proved" not in render(record(replace(FAILED, details=_details())), Look(width=120))


REFUTED = {"claim": "in-bounds", "subject": "load from x", "verdict": "refuted", "line": 9, "sizes": {"N": 3}, "finding": "Line 9: loads 1 element outside of x, first [3] in program (0, 0, 0)."}
LEFT_OPEN = {"claim": "covered", "subject": "the result", "verdict": "open", "why": "the solver does not decide it within its limit"}
FOUND = {"proved": 0, "refuted": 1, "open": 1, "claims": [REFUTED, LEFT_OPEN], "assumptions": ["two arguments share memory"]}


def test_a_claim_that_does_not_hold_says_what_to_do_and_an_open_one_that_there_is_nothing_to_do() -> None:
    lines = [line.strip() for line in proofs.render({"passes": {"forward": FOUND}}).splitlines()]
    assert lines[1:4] == [
        "✗ line 9    load from x stays inside", f"for N = 3: {REFUTED['finding']}", "to do: let a mask bound the offsets there, in each dimension",
    ]  # fmt: skip
    assert lines[-1] == OPEN or lines[-2] == OPEN


# --- what has changed since the check before is told by its checks ----------------------------------------------------


NOW_RIGHT = replace(FAILED, outcome=Outcome.PASSED, earned=FAILED.possible, message="", cause=None, source=None)


def test_what_passes_now_and_what_fails_now_is_told_with_the_score_before() -> None:
    before, now = record(PASSED, FAILED), record(PASSED, NOW_RIGHT)
    assert changes(before, now) == [("Passes now", [FAILED.id])]
    assert changes(now, before) == [("Fails now", [FAILED.id])]
    assert sentence(before, now) == f"Last time: 40 of 70 points. Passes now: {FAILED.title}."


def test_that_all_is_right_now_is_said_without_a_list_and_a_long_list_ends_with_a_number() -> None:
    failed = [replace(FAILED, id=f"test_{n}", title=f"Title {n}") for n in range(6)]
    right = [replace(NOW_RIGHT, id=check.id, title=check.title) for check in failed]
    assert sentence(record(*failed), record(*right)).endswith("All that was measured passes now, 6 checks more than before.")
    some = sentence(record(*failed, FAILED), record(*right, FAILED))
    assert some.endswith("Passes now: Title 0; Title 1; Title 2; 3 others.")


def test_a_check_that_fails_for_another_reason_is_told_and_a_moved_line_is_none() -> None:
    assert FAILED.source is not None
    moved = replace(FAILED, source=SourceLine(FAILED.source.line + 3, f"  {FAILED.source.text}"))
    assert changes(record(FAILED), record(moved)) == []
    other = replace(FAILED, source=SourceLine(3, "another line"))
    assert changes(record(FAILED), record(other)) == [("Fails for another reason", [FAILED.id])]


def test_the_first_check_another_assignment_and_a_part_of_the_checks_are_not_compared() -> None:
    whole = record(PASSED, FAILED)
    assert sentence(None, whole) == sentence(whole | {"assignment": "other"}, whole) == sentence(whole, whole) == ""
    assert sentence(whole, record(NOW_RIGHT)) == f"Passes now: {FAILED.title}."
