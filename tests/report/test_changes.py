"""What has changed since the check before is told by its checks."""

from __future__ import annotations

from dataclasses import replace

from gradekit.findings import Outcome, SourceLine
from gradekit.report.changes import changes, sentence

from .samples import FAILED, PASSED, record

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
