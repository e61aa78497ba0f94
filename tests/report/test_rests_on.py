"""A record without failures says what it rests on."""

from __future__ import annotations

from typing import Any

from gradekit.report.rests_on import in_words, rests_on, unsure


def check(outcome: str = "passed", **details: Any) -> dict[str, Any]:
    return {"outcome": outcome, "details": details}


UNSEEN = {"line": 7, "what": "N % 251 == 250 is never true"}
COVERAGE = {"branches": {"of": 4, "seen": 3, "unseen": [UNSEEN]}}
CHECKS = [
    check(examples=12, exact={"forms": 3, "exact": 2, "not": ["its inputs share memory"]}, coverage=COVERAGE),
    check(examples=5, coverage=COVERAGE),
    check(proofs={"softmax": {"proved": 9, "open": 1, "refuted": 0}}),
]


def test_what_was_proved_tried_covered_and_not_seen_is_summed_up() -> None:
    found = {"proved": 9, "open": 1, "exact": 2, "not_exact": 1, "examples": 17, "unseen": [UNSEEN]}
    assert rests_on(CHECKS) == found


def test_a_record_with_a_failure_rests_on_nothing() -> None:
    assert rests_on([*CHECKS, check("failed")]) == rests_on([check()]) == {}


def test_a_line_says_it_and_what_nothing_has_looked_at_is_named() -> None:
    unfollowed = {"line": 4, "what": "text made of a size"}
    branches = {"of": 1, "seen": 1, "unseen": [], "unfollowed": [unfollowed]}
    record = {"rests_on": rests_on([*CHECKS, check(coverage={"branches": branches})])}
    assert in_words(record) == (
        "This score rests on 17 examples, 9 claims proved, 2 formulas right in exact arithmetic; "
        "1 outcome of its branches never occurred."
    )
    assert unsure(record) == ["line 4: text made of a size", "line 7: N % 251 == 250 is never true"]


def test_a_record_that_rests_on_nothing_says_nothing() -> None:
    assert (in_words({}), unsure({})) == ("", [])
