"""A course's rules, from a table: what lateness costs, which attempt counts, and what course.toml may say."""

import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from gradekit.assignment import UsageError
from gradekit.batch.gradebook import Line, chosen_attempt, counted
from gradekit.batch.policy import LatePolicy, Policy, load, spelled
from tests.beside import beside

CASES = beside(__file__)

DUE = datetime.fromisoformat("2026-12-01T23:59:00+01:00")
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
def attempt(points: float, submitted: datetime | None = None, digest: str = "", student: str = "ada") -> Line:
    return Line(student, "softmax", "graded", points, 100, submitted=submitted, digest=digest)


BY_DAY = LatePolicy(percent_a_day=10, at_most=50)
BY_STEP = LatePolicy(steps=((timedelta(0), 5), (DAY, 20), (3 * DAY, 40)))


@pytest.mark.parametrize(("late", "lateness", "percent"), [
    (BY_DAY, timedelta(0), 0),
    (BY_DAY, timedelta(seconds=1), 10),
    (BY_DAY, DAY, 10),
    (BY_DAY, DAY + timedelta(seconds=1), 20),
    (BY_DAY, 9 * DAY, 50),
    (BY_STEP, timedelta(0), 0),
    (BY_STEP, HOUR, 5),
    (BY_STEP, DAY, 5),
    (BY_STEP, DAY + HOUR, 20),
    (BY_STEP, 30 * DAY, 40),
    (LatePolicy(percent_a_day=60), 9 * DAY, 100),
    (LatePolicy(percent_an_hour=2), timedelta(minutes=61), 4),
    (LatePolicy(percent_an_hour=2, at_most=25), DAY, 25),
    (LatePolicy(), 9 * DAY, 0),
])
def test_lateness_costs(late: LatePolicy, lateness: timedelta, percent: float) -> None:
    assert late.percent(lateness) == percent


@pytest.mark.parametrize(("policy", "student", "after_due", "points"), [
    (Policy(), "ada", 99 * DAY, 80),
    (Policy(due=DUE, late=BY_DAY), "ada", -HOUR, 80),
    (Policy(due=DUE, late=BY_DAY), "ada", HOUR, 72),
    (Policy(due=DUE, late=BY_DAY, grace=HOUR), "ada", HOUR, 80),
    (Policy(due=DUE, late=BY_DAY, grace=HOUR), "ada", 2 * HOUR, 72),
    (Policy(due=DUE, late=BY_DAY, extensions={"ada": 2 * DAY}), "ada", 2 * DAY, 80),
    (Policy(due=DUE, late=BY_DAY, extensions={"ada": 2 * DAY}), "bob", 2 * DAY, 64),
    (Policy(due=DUE, late=BY_DAY, extensions={"ada": DUE + DAY}), "ada", DAY + HOUR, 72),
    (Policy(due=DUE, closes=DUE + DAY), "ada", DAY, 80),
    (Policy(due=DUE, closes=DUE + DAY), "ada", DAY + HOUR, 0),
    (Policy(due=DUE, closes=DUE + DAY, extensions={"ada": DAY}), "ada", DAY + HOUR, 80),
    (Policy(extensions={"ada": DUE}, late=BY_DAY), "ada", HOUR, 72),
])
def test_an_attempt_counts(policy: Policy, student: str, after_due: timedelta, points: float) -> None:
    assert counted(attempt(80, DUE + after_due, student=student), policy).points == pytest.approx(points)


def test_an_attempt_without_a_time_is_not_late() -> None:
    assert counted(attempt(80), Policy(due=DUE, closes=DUE, late=BY_DAY)).points == 80


def test_extra_credit_counts_up_to_its_limit() -> None:
    assert counted(attempt(118), Policy(extra_credit=10)).points == 110
    assert counted(attempt(118), Policy()).points == 100


def test_the_penalty_is_explained() -> None:
    late = counted(attempt(80, DUE + DAY + 2 * HOUR), Policy(due=DUE, late=BY_DAY))
    assert late.note == "1 day 2 h late: 20 % less"


EARLY = attempt(60, DUE - DAY, "early")
BETTER = attempt(90, DUE + DAY, "better")
WORSE = attempt(50, DUE + 2 * DAY, "worse")
CLOSED = attempt(100, DUE + 9 * DAY, "closed")


@pytest.mark.parametrize(("policy", "attempts", "key"), [
    (Policy(due=DUE), [WORSE, EARLY, BETTER], "better"),
    (Policy(due=DUE, late=LatePolicy(percent_a_day=50)), [WORSE, EARLY, BETTER], "early"),
    (Policy(due=DUE, keep="last"), [WORSE, EARLY, BETTER], "worse"),
    (Policy(due=DUE, keep="last", closes=DUE + 3 * DAY), [EARLY, BETTER, CLOSED], "better"),
    (Policy(due=DUE, keep="last", closes=DUE + 3 * DAY), [CLOSED], "closed"),
    (Policy(due=DUE, attempts=1), [EARLY, BETTER], "early"),
    (Policy(due=DUE), [], None),
])
def test_this_attempt_is_kept(policy: Policy, attempts: list[Line], key: str | None) -> None:
    chosen = chosen_attempt([counted(one, policy) for one in attempts], policy)
    assert (chosen.digest if chosen else None) == key


@pytest.mark.parametrize(("hidden", "now", "published", "seen"), [
    ("visible", DUE - DAY, False, True),
    ("hidden", DUE + DAY, True, False),
    ("after_published", DUE + DAY, False, False),
    ("after_published", DUE - DAY, True, True),
    ("after_due_date", DUE - HOUR, True, False),
    ("after_due_date", DUE, False, True),
])
def test_hidden_checks_are_seen(hidden: str, now: datetime, published: bool, seen: bool) -> None:
    assert Policy(due=DUE, hidden=hidden).visibility(now, published) is seen


def test_without_a_due_date_nothing_is_ever_after_it() -> None:
    assert not Policy(hidden="after_due_date").visibility(DUE, True)


COURSE = """
[assignments.softmax]
due = 2026-12-01T23:59:00+01:00
closes = "7d"
grace = "15m"
late = {percent_a_day = 10, at_most = 50}
keep = "last"
extra_credit = 10
hidden = "after_due_date"
[assignments.softmax.extensions]
ada = "1d 12h"
bob = 2026-12-24T00:00:00Z
[assignments.matmul]
late = {steps = [["0s", 5], ["1d", 20]]}
"""


def test_course_toml_says_all_of_it(tmp_path: Path) -> None:
    (tmp_path / "course.toml").write_text(COURSE)
    softmax, matmul = load(tmp_path / "course.toml").policies.values()
    assert softmax == Policy(
        DUE, DUE + 7 * DAY, timedelta(minutes=15), BY_DAY, "last", 10.0, "after_due_date",
        {"ada": DAY + 12 * HOUR, "bob": datetime.fromisoformat("2026-12-24T00:00:00+00:00")},
    )  # fmt: skip
    assert matmul.late == LatePolicy(steps=((timedelta(0), 5.0), (DAY, 20.0)))


@pytest.mark.parametrize(("text", "message"), CASES["refused"])
def test_what_course_toml_may_not_say_is_named_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "course.toml").write_text(f"[assignments.softmax]\n{text}\n")
    with pytest.raises(UsageError, match=re.escape(message)):
        load(tmp_path / "course.toml")


def test_a_broken_course_toml_is_named(tmp_path: Path) -> None:
    (tmp_path / "course.toml").write_text("[assignments")
    with pytest.raises(UsageError, match="course.toml is not valid TOML"):
        load(tmp_path / "course.toml")


@pytest.mark.parametrize(
    ("duration", "text"),
    [(DAY, "1 day"), (2 * DAY + HOUR, "2 days 1 h"), (5 * HOUR, "5 h"), (timedelta(minutes=125), "2 h 5 min"), (timedelta(seconds=30), "1 min"),
     (DAY + timedelta(seconds=1), "1 day 1 h"), (2 * DAY - timedelta(minutes=1), "2 days"), (timedelta(seconds=3599), "1 h")],
)
def test_a_duration_is_spelled(duration: timedelta, text: str) -> None:
    assert spelled(duration) == text
