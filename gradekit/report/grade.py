"""What a record is worth to a course: the one place where points that nobody could measure become a part of a grade."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from gradekit.credit import PendingPolicy, rounded, total
from gradekit.report.text import points

LEFT_OUT = PendingPolicy.LEFT_OUT


@dataclass(frozen=True)
class Grade:
    """A `record` under a course's decision: `points` of `possible`, `pending` of them not measured; `share` is the
    earned part of the others. It `is_open`, no zero and no grade, where nothing counts yet."""

    record: Mapping[str, Any]
    points: float
    possible: float
    pending: float
    share: float
    policy: PendingPolicy = LEFT_OUT
    is_open: bool = False

    @property
    def is_given(self) -> bool:
        """Whether there is a grade to hand on: there is none where the grader failed, or nothing was measured."""
        return self.record["status"] != "fault" and not self.is_open

    @property
    def part(self) -> float:
        """The grade from 0 to 1; a bonus does not lift it above 1."""
        return min(self.points / self.possible, 1.0) if self.possible else 0.0

    def of(self, check: Mapping[str, Any]) -> float:
        """What a check counts: what is earned, and what the course decides is pending; a fault is left out."""
        if check["outcome"] not in ("pending", "fault") or check["bonus"]:
            return float(check["earned"])
        rule = self.policy if check["outcome"] == "pending" else LEFT_OUT
        part = {PendingPolicy.LOST: 0.0, PendingPolicy.GIVEN: 1.0}.get(rule, self.share)
        return rounded(check["earned"] + (check["possible"] - check["earned"]) * part)

    @property
    def said(self) -> str:
        """What the pending points count, for the report; empty where there are none."""
        if not self.pending:
            return ""
        text = f"{points(self.pending)} points were not measured"
        if self.is_open:
            return f"{text}; there is no grade yet."
        if self.policy is PendingPolicy.LOST:
            return f"{text}; the course counts them as lost until they are."
        if self.policy is PendingPolicy.GIVEN:
            return f"{text}; the course gives them until they are."
        return f"{text} and are left out: the grade is what was earned of all others, {points(100 * self.share)} %."


def grade(record: Mapping[str, Any], policy: PendingPolicy = LEFT_OUT) -> Grade:
    """The grade of a record. Left out, what is pending counts in the proportion in which the rest was earned, so that
    all that was measured makes a whole, also where an LMS knows a fixed number of points alone."""
    score, checks = record["score"], record["checks"]
    measured = rounded(score["possible"] - score["pending"])
    earned = total(check["earned"] for check in checks if not check["bonus"])
    share = min(earned / measured, 1.0) if measured > 0 else 0.0
    waits = {check["outcome"] for check in checks} & {"pending", "fault"}
    is_open = score["pending"] > 0 and measured <= 0 and (policy is LEFT_OUT or "fault" in waits)
    found = Grade(record, score["earned"], score["possible"], score["pending"], share, policy, is_open)
    return replace(found, points=total(map(found.of, checks))) if score["pending"] else found
