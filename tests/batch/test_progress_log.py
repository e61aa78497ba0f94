"""While a class is graded, each result has its line, and about how long the rest takes is said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gradekit.batch.summary import Count, ProgressLog, duration
from gradekit.findings import Kind, Outcome
from tests.report.samples import ENVIRONMENT, PASSED, PENDING, record

WAITS = record(PASSED, replace(PENDING, kind=Kind.SPEED))
MEASURED = record(PASSED, replace(PENDING, kind=Kind.SPEED, outcome=Outcome.PASSED, earned=30, message=""),
                  environment=ENVIRONMENT | {"gpu": "NVIDIA H200"})  # fmt: skip


def test_nothing_is_guessed_from_the_first_results() -> None:
    count = Count(40)
    count.add(30.0)
    count.add(31.0)
    assert str(count) == "2/40"


def test_the_time_until_graders_have_started_is_no_part_of_the_estimate() -> None:
    count = Count(40)
    for now in (100.0, 102.0, 104.0):
        count.add(now)
    assert str(count) == "3/40, 74 s left"


def test_the_last_one_leaves_nothing() -> None:
    count = Count(3)
    for now in (1.0, 2.0, 3.0):
        count.add(now)
    assert str(count) == "3/3"


@pytest.mark.parametrize(
    ("value", "said"), [(8.2, "8.2 s"), (200, "4 min"), (5000, "1 h 24 min"), (86400 * 1.2, "28 h 48 min")]
)
def test_long_times_are_said_in_long_units(value: float, said: str) -> None:
    assert duration(value) == said


def test_the_two_lanes_count_apart() -> None:
    said: list[str] = []
    progress = ProgressLog({"a": "ada", "b": "bob"}, 1, 1, True, said.append, clock=lambda: 0.0)
    progress.graded("a", WAITS)
    progress.measured("b", MEASURED)
    progress.measured("a", MEASURED)
    assert said == [
        "[1/1] ada  40 / 70  (30 pending)",
        "[speed 1/2, on NVIDIA H200] bob  70 / 70",
        "[speed 2/2, on NVIDIA H200] ada  70 / 70",
    ]
