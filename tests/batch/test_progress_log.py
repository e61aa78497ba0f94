"""While a class is graded, each result has its line, and about how long the rest takes is said."""

from dataclasses import replace

import pytest

from gradekit.batch.pool import GraderPool
from gradekit.batch.summary import Count, ProgressLog, duration
from gradekit.findings import Kind, Outcome
from tests.report.samples import ENVIRONMENT, PASSED, PENDING, record

WAITS = record(PASSED, replace(PENDING, kind=Kind.SPEED))
MEASURED = record(PASSED, replace(PENDING, kind=Kind.SPEED, outcome=Outcome.PASSED, earned=30, message=""),
                  environment=ENVIRONMENT | {"gpu": "NVIDIA H200"})  # fmt: skip


class WithCards(GraderPool):
    def __init__(self) -> None:
        super().__init__(1, ["GPU-1"])


@pytest.mark.parametrize(
    ("of", "ended", "each", "said"),
    [(40, (30.0, 31.0), 1.0, "2/40"), (40, (102.0, 104.0, 106.0), 2.0, "3/40, 74 s left"), (3, (1.0, 2.0, 3.0), 1.0, "3/3")],
    ids=["nothing is guessed from the first", "not the time until graders have started", "the last one leaves nothing"],
)
def test_what_is_left_is_estimated(of: int, ended: tuple[float, ...], each: float, said: str) -> None:
    count = Count(of)
    for now in ended:
        count.add(now, each)
    assert str(count) == said


SPREAD = [1.0 + number * 7 % 19 for number in range(400)]
QUICK_AND_SLOW = [0.5 if number * 7 % 19 < 10 else 4.0 + number % 3 for number in range(400)]


@pytest.mark.parametrize("seconds", [SPREAD, QUICK_AND_SLOW], ids=["1 to 19 s", "half a second, or 4 to 6 s"])
@pytest.mark.parametrize("graders", [2, 4, 16])
def test_after_a_tenth_the_estimate_is_right_within_a_fifth(seconds: list[float], graders: int) -> None:
    free, ended = [0.0] * graders, list[tuple[float, float]]()
    for each in seconds:
        began = min(free)
        free[free.index(began)] = began + each
        ended.append((began + each, each))
    count = Count(400)
    for now, each in sorted(ended)[:40]:
        count.add(now, each)
    left = max(free) - now
    assert abs(count.left - left) < left / 5


@pytest.mark.parametrize(
    ("outcome", "ahead"), [(Outcome.PASSED, 17), (Outcome.FAILED, 37)], ids=["by another's result", "as others do"]
)
def test_twins_count_as_long_as_they_will_take(outcome: Outcome, ahead: int) -> None:
    """Twenty submissions, each with a twin: three have been graded, in a second each"""
    todo = {f"{name}{number}": f"a{number}" for name in "ab" for number in range(20)}
    now, said = [0.0], list[str]()
    progress = ProgressLog(dict.fromkeys(todo, "ada"), todo, 0, GraderPool(1), said.append, clock=lambda: now[0])
    for number in range(3):
        now[0] += 1.0
        progress.graded(f"a{number}", record(replace(PASSED, outcome=outcome)) | {"seconds": 1.0})
    assert said[-1].startswith(f"[3/40, {ahead} s left]")


@pytest.mark.parametrize(
    ("value", "said"), [(8.2, "8.2 s"), (200, "4 min"), (5000, "1 h 24 min"), (86400 * 1.2, "1 day 5 h")]
)
def test_long_times_are_said_in_long_units(value: float, said: str) -> None:
    assert duration(value) == said


def test_the_two_lanes_count_apart() -> None:
    said: list[str] = []
    progress = ProgressLog({"a": "ada", "b": "bob"}, {"a": "a"}, 1, WithCards(), said.append, clock=lambda: 0.0)
    progress.graded("a", WAITS)
    progress.measured("b", MEASURED)
    progress.measured("a", MEASURED)
    assert said == [
        "[1/1] ada  40 / 70  (30 pending)", "[speed 1/2, on NVIDIA H200] bob  70 / 70",
        "[speed 2/2, on NVIDIA H200] ada  70 / 70",
    ]
