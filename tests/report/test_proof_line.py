"""What a memory check's line says of its proofs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gradekit.report import proofs
from gradekit.report.proofs import OPEN, summary
from gradekit.report.terminal import Look, render

from .samples import FAILED, PASSED, record

ALL = {"proved": 6, "refuted": 0, "open": 0, "claims": [], "largest": {"N": 2145386495}}


def _details(**changes: Any) -> dict[str, Any]:
    return {"proofs": {"add": ALL | changes}}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "proved for every N up to 2,145,386,495"),
        ({"largest": {"M": 65535, "N": 4096}}, "proved for every M up to 65,535 and every N up to 4,096"),
        ({"largest": {"M": 9, "N": 9, "K": 9}}, "proved for all sizes"),
        ({"largest": {"size 0": 9}}, "proved for all sizes"),
        ({"unseen": {"N": 7}}, "proved for every N up to 2,145,386,495, where host code was followed"),
        ({"gaps": ["no"]}, "proved for every N up to 2,145,386,495, where host code was followed"),
        ({"open": 2}, "6 of 8 claims proved for all sizes"),
        ({"refuted": 1}, ""),
        ({"proved": 0, "open": 3}, ""),
    ],
)
def test_the_summary_says_no_more_than_was_proved(changes, said):
    assert summary(_details(**changes)) == said


def test_nothing_is_said_where_nothing_was_asked():
    assert summary({}) == ""


def test_a_passed_check_says_it_on_its_line():
    check = replace(PASSED, title="Stays inside its tensors", details=_details())
    lines = render(record(check), Look(width=120)).splitlines()
    assert any("Stays inside its tensors (proved for every N up to 2,145,386,495)" in line for line in lines)


def test_a_failed_check_does_not_say_it():
    text = render(record(replace(FAILED, details=_details())), Look(width=120))
    assert "proved" not in text


REFUTED = {"claim": "in-bounds", "subject": "load from x", "verdict": "refuted", "line": 9, "sizes": {"N": 3}, "finding": "Line 9: loads 1 element outside of x, first [3] in program (0, 0, 0)."}
LEFT_OPEN = {"claim": "covered", "subject": "the result", "verdict": "open", "why": "the solver does not decide it within its limit"}
FOUND = {"proved": 0, "refuted": 1, "open": 1, "claims": [REFUTED, LEFT_OPEN], "assumptions": ["two arguments share memory"]}


def test_a_claim_that_does_not_hold_says_what_to_do_and_an_open_one_that_there_is_nothing_to_do() -> None:
    lines = [line.strip() for line in proofs.render({"passes": {"forward": FOUND}}).splitlines()]
    assert lines[1:4] == [
        "✗ line 9    load from x stays inside", f"for N = 3: {REFUTED['finding']}", "to do: let a mask bound the offsets there, in each dimension",
    ]  # fmt: skip
    assert lines[-1] == OPEN or lines[-2] == OPEN
