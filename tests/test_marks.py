"""A person's mark wins over what the machine found, for the answer that it was given for; points add up as they were meant."""

import functools
import operator
from dataclasses import replace

import pytest

from gradekit.assignment import UsageError
from gradekit.batch.gradebook import Line, counted
from gradekit.batch.policy import Policy
from gradekit.credit import rounded, total
from gradekit.findings import Check, Kind, Outcome, Report, Status
from gradekit.marks import LINE, TOTAL, Mark, applied, checked
from gradekit.report import junit, page, terminal
from gradekit.report.record import to_dict

from .report.samples import FAILED, PASSED, PENDING, report

ANSWERED = replace(PENDING, details={"answer": "9f86d081884c"})


def marked(graded: Report, **marks: Mark) -> list[tuple[Outcome, float, str]]:
    return [(check.outcome, check.earned, check.message) for check in applied(graded, marks).checks]


def test_a_mark_takes_the_place_of_what_was_pending() -> None:
    marks = {"test_speed": Mark(20, "R. Meier", "Say what waits.")}
    assert marked(report(ANSWERED), **marks) == [(Outcome.FAILED, 20, "Say what waits. (marked by R. Meier)")]


def test_a_mark_wins_over_what_the_machine_found_too() -> None:
    check = applied(report(FAILED), {FAILED.id: Mark(30)}).checks[0]
    assert (check.outcome, check.earned, check.cause) == (Outcome.PASSED, 30, None)
    assert check.details["marked_by"] == "a person"


def test_other_checks_stay_as_they_are() -> None:
    graded = report(PASSED, ANSWERED)
    assert applied(graded, {"test_speed": Mark(30)}).checks[0] == graded.checks[0]


def test_a_mark_for_this_answer_counts() -> None:
    mark = Mark(30, answer="9f86d081884c")
    assert marked(report(ANSWERED), test_speed=mark)[0][:2] == (Outcome.PASSED, 30)


def test_a_mark_for_another_answer_waits_for_its_person_again() -> None:
    outcome, earned, message = marked(report(ANSWERED), test_speed=Mark(30, "R. Meier", answer="000000000000"))[0]
    assert (outcome, earned) == (Outcome.PENDING, 0)
    assert "another one than R. Meier marked" in message


@pytest.mark.parametrize("points", [-1, 31])
def test_a_mark_beyond_what_a_check_is_worth_is_refused(points: float) -> None:
    with pytest.raises(UsageError, match="worth 0 to 30 points"):
        checked(report(ANSWERED), {"test_speed": Mark(points)})


def test_a_mark_for_no_check_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean test_speed"):
        checked(report(ANSWERED), {"test_sped": Mark(1)})


def test_a_comment_leaves_the_points_as_they_are() -> None:
    (check,) = applied(report(FAILED), {FAILED.id: Mark(None, "R. Meier", "Ask me.")}).checks
    assert (check.outcome, check.earned, check.cause) == (FAILED.outcome, FAILED.earned, FAILED.cause)
    assert check.message == f"{FAILED.message}\nAsk me. (comment by R. Meier)"


def test_a_check_that_is_worth_less_by_now_gives_no_more_than_that() -> None:
    assert marked(report(FAILED), **{FAILED.id: Mark(99), "test_gone": Mark(5)})[0][:2] == (Outcome.PASSED, 30)


def test_points_that_a_person_gave_in_part_are_no_failure() -> None:
    found = to_dict(applied(report(FAILED), {FAILED.id: Mark(15.0, "Mo", "Nearly.")}))
    text = terminal.render(found)
    assert "accepted in part" in text and "15 / 30" in text and "✗" not in text and "failed" not in text
    assert "accepted in part" in page.render(found) and "failed<" not in page.render(found)
    assert "<failure" not in junit.render(found)
    commented = to_dict(applied(report(FAILED), {FAILED.id: Mark(None, "Mo", "See line 3.")}))
    assert "✗" in terminal.render(commented)


@pytest.mark.parametrize(("status", "said"), [(Status.REJECTED, "was rejected"), (Status.FAULT, "was not graded")])
def test_a_check_of_what_was_not_graded_earns_nothing_so_a_mark_for_it_is_refused(status: Status, said: str) -> None:
    rejected = replace(report(ANSWERED), status=status)
    with pytest.raises(UsageError, match=f"{said}: mark it as a whole, with total in place of test_speed"):
        checked(rejected, {"test_speed": Mark(3, "Ada", "")})
    checked(rejected, {"test_speed": Mark(None, "Ada", "a comment")})


def test_comments_at_lines_reach_who_was_marked_as_a_whole_too() -> None:
    given = {TOTAL: Mark(10, "Mo", "By hand."), f"{LINE}3": Mark(None, "Mo", "Say what it does.")}
    (check,), notes = (found := applied(replace(report(), status=Status.REJECTED), given, 100)).checks, found.notes
    assert check.earned == 10 and "Line 3: Say what it does. (comment by Mo)" in notes


# --- Points are shown as they were meant ------------------------------------------------------------------------------


def whole(points: list[float], outcome: Outcome = Outcome.PASSED) -> Report:
    earned = points if outcome is Outcome.PASSED else [0.0] * len(points)
    checks = [
        Check(f"test_{at}", "Adds", Kind.CORRECTNESS, outcome, mine, most)
        for at, (mine, most) in enumerate(zip(earned, points, strict=True))
    ]
    return Report("double", Status.GRADED, {}, tuple(checks), {}, 0.0)


@pytest.mark.parametrize(
    ("points", "whole"),
    [([1 / 3] * 3, 1), ([0.1] * 10, 1), ([40 / 3] * 9, 120), ([100 / 7] * 7, 100), ([0.7, 0.1, 0.2], 1), ([], 0)],
)
def test_parts_of_a_whole_add_up_to_it(points: list[float], whole: int) -> None:
    assert total(points) == whole


@pytest.mark.parametrize(("outcome", "field"), [(Outcome.PASSED, "earned"), (Outcome.PENDING, "pending")])
def test_the_score_of_a_record_is_rounded(outcome: Outcome, field: str) -> None:
    score = to_dict(whole([8.4] * 10 + [36], outcome))["score"]
    assert functools.reduce(operator.add, [8.4] * 10 + [36], 0.0) != 120  # Python 3.12 makes up for errors in sum()
    assert (score[field], score["possible"]) == (120, 120)


def test_points_that_are_scaled_are_rounded() -> None:
    scaled = counted(Line("ada", "softmax", "graded", 0.3, 0.9, pending=0.6), Policy(scale=100))
    assert (scaled.points, scaled.pending) == (rounded(100 / 3), rounded(200 / 3))
    assert 0.1 * 3 != rounded(0.1 * 3) == 0.3
