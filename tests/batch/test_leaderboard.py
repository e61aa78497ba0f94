"""Speeds are ranked with ties, under chosen names alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from gradekit.batch import course_pages
from gradekit.batch.policy import Attempt, Policy, chosen_attempt, load
from gradekit.findings import Kind
from tests.report.samples import PASSED, PENDING, record


def timed(value: float, width: float) -> dict[str, Any]:
    ratios = {"eager": {"value": value, "low": value - width, "high": value + width}}
    check = replace(PASSED, id="test_speed", title="Is fast", kind=Kind.SPEED, details={"speed": {"size": "4096", "ratios": ratios}})
    return record(PASSED, check)


CLASS = {
    "ada": timed(2.0, 0.1), "bob": timed(1.95, 0.1), "cyd": timed(1.8, 0.05), "dan": timed(1.0, 0.01),
    "eve": record(PASSED, PENDING),
}  # fmt: skip


def test_whose_intervals_overlap_share_a_rank() -> None:
    (found,) = course_pages.speeds(CLASS).values()
    assert [(rank, speed.student) for rank, speed in course_pages.ranked(found)] == [(1, "ada"), (1, "bob"), (3, "cyd"), (4, "dan")]


def test_only_who_chose_a_name_is_on_the_board() -> None:
    page = course_pages.board("softmax", course_pages.speeds(CLASS), {"ada": "Queen", "dan": "Slow <b>", "eve": "Eve!"})
    assert "Queen" in page and "Slow &lt;b&gt;" in page and "2 (1.9 to 2.1)" in page
    assert not [name for name in ("ada", "bob", "cyd", "Eve!") if name in page]
    assert course_pages.board("softmax", course_pages.speeds(CLASS), {"eve": "Eve!"}) == ""


def test_a_student_reads_where_they_stand_and_nobodys_name() -> None:
    found = course_pages.speeds(CLASS)
    (said,) = course_pages.standing("bob", found)
    assert "1 of 3 others" not in said and "0 of 3 others are faster, 1 slower" in said
    assert not list(course_pages.standing("eve", found)) and "ada" not in said


def test_a_leaderboard_is_one_that_course_toml_asks_for(tmp_path: Path) -> None:
    (tmp_path / "course.toml").write_text('[assignments.a]\nleaderboard = {ada = "Q"}\n[assignments.b]\n')
    found = load(tmp_path / "course.toml")
    assert found.policy("a").leaderboard == {"ada": "Q"} and found.policy("b").leaderboard is None


def test_attempts_beyond_the_limit_count_nothing() -> None:
    start = datetime(2026, 12, 1, tzinfo=UTC)
    tries = [Attempt(10 * (n + 1), 100, submitted=start + timedelta(hours=n), key=str(n)) for n in range(4)]
    chosen = chosen_attempt(tries, Policy(attempts=2), "ada")
    assert chosen is not None and chosen.key == "1"
    chosen = chosen_attempt(tries, Policy(), "ada")
    assert chosen is not None and chosen.key == "3"
