"""Points are shown as they were meant: thirds and tenths that make up a whole give that whole."""

import functools
import operator

import pytest

from gradekit.batch.policy import Attempt
from gradekit.credit import rounded, total
from gradekit.findings import Check, Kind, Outcome, Report, Status
from gradekit.report.record import to_dict


def report(points: list[float], outcome: Outcome = Outcome.PASSED) -> Report:
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
    score = to_dict(report([8.4] * 10 + [36], outcome))["score"]
    assert functools.reduce(operator.add, [8.4] * 10 + [36], 0.0) != 120  # Python 3.12 makes up for errors in sum()
    assert (score[field], score["possible"]) == (120, 120)


def test_points_that_are_scaled_are_rounded() -> None:
    scaled = Attempt(earned=0.3, possible=0.9, pending=0.6).scaled(100)
    assert (scaled.earned, scaled.pending) == (rounded(100 / 3), rounded(200 / 3))
    assert 0.1 * 3 != rounded(0.1 * 3) == 0.3
