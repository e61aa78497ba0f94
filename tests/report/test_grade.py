"""What was not measured counts what the course decides, and the same in every grade that leaves gradekit."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gradekit.batch import exports, feedback, gradebook
from gradekit.batch.intake import HandIn
from gradekit.batch.policy import Policy
from gradekit.credit import PendingPolicy
from gradekit.report import for_lms
from gradekit.report.grade import grade

from .samples import FAILED, FAULT, PASSED, PENDING, record

LEFT_OUT, LOST, GIVEN = PendingPolicy
PERFECT, HALF = record(PASSED, PENDING), record(replace(PASSED, id="a"), replace(FAILED, possible=40), PENDING)
BONUS = record(PASSED, PENDING, replace(PASSED, id="b", bonus=True, earned=5, possible=5))

CANVAS = "Student,ID,SIS Login ID,Section,Softmax (1)\n    Points Possible,,,,{possible}\nAda,ada,ada,,\n"
MOODLE = "Identifier,Full name,Grade,Maximum Grade,Last modified (grade)\nParticipant ada,Ada,,{possible},-\n"


def line(found: Mapping[str, Any], policy: PendingPolicy) -> Any:
    given = [HandIn("ada", Path("a.py"), "Ada", digest="digest")]
    (made,) = gradebook.lines("softmax", given, {"digest": found}, {}, Policy(pending=policy))
    return made


def in_canvas(found: Mapping[str, Any], policy: PendingPolicy) -> float:
    possible = found["score"]["possible"]
    filled = exports.canvas(CANVAS.format(possible=possible), [line(found, policy)], "Softmax", possible)
    return float(filled.text.splitlines()[-1].split(",")[-1]) / possible


def in_moodle(found: Mapping[str, Any], policy: PendingPolicy) -> float:
    possible = found["score"]["possible"]
    filled = exports.moodle(MOODLE.format(possible=possible), [line(found, policy)], possible)
    return float(filled.text.splitlines()[-1].split(",")[2]) / possible


def in_classroom(found: Mapping[str, Any], policy: PendingPolicy) -> float:
    results = for_lms.classroom(grade(found, policy))
    return sum(test["score"] for test in results["tests"]) / results["max_score"]


def in_autolab(found: Mapping[str, Any], policy: PendingPolicy) -> float:
    result = json.loads(for_lms.autolab(grade(found, policy)).splitlines()[-1])
    assert result["scoreboard"][0] == sum(result["scores"].values())
    return sum(result["scores"].values()) / found["score"]["possible"]


LEAVING = {
    "Gradescope": lambda found, policy: for_lms.gradescope(grade(found, policy))["score"] / found["score"]["possible"],
    "PrairieLearn": lambda found, policy: for_lms.prairielearn(grade(found, policy))["score"],
    "Autolab": in_autolab, "Classroom": in_classroom, "Canvas": in_canvas, "Moodle": in_moodle,
}  # fmt: skip


@pytest.mark.parametrize("leaving", LEAVING.values(), ids=LEAVING)
def test_every_grade_that_leaves_counts_what_is_pending_alike(leaving: Any) -> None:
    shares = [(found, policy, round(leaving(found, policy), 4)) for found in (PERFECT, HALF) for policy in PendingPolicy]
    assert [share for *_, share in shares] == [1.0, round(40 / 70, 4), 1.0, 0.5, round(40 / 110, 4), round(70 / 110, 4)]


def test_a_perfect_submission_without_a_gpu_is_a_whole_by_default() -> None:
    assert grade(PERFECT).part == 1 and for_lms.prairielearn(grade(PERFECT))["score"] == 1
    assert for_lms.gradescope(grade(PERFECT))["score"] == 70
    assert json.loads(for_lms.autolab(grade(PERFECT)).splitlines()[-1])["scores"] == {"Correctness": 40, "Speed": 30}


def test_a_fault_is_lost_for_nobody() -> None:
    assert grade(record(PASSED, FAULT), LOST).points == 50
    assert grade(record(PASSED, FAULT, PENDING), LOST).points == 50


def test_a_bonus_comes_on_top_and_does_not_hide_what_was_lost() -> None:
    assert grade(BONUS).points == 75 and grade(BONUS).part == 1
    lost = record(FAILED, PENDING, replace(PASSED, id="b", bonus=True, earned=5, possible=5))
    assert (grade(lost).points, grade(lost).share) == (5, 0)


def test_where_nothing_was_measured_there_is_no_grade_unless_the_course_says_so() -> None:
    found = record(PENDING)
    assert line(found, LEFT_OUT).status == "pending" and not line(found, LEFT_OUT).counts
    assert "score" not in for_lms.gradescope(grade(found)) and for_lms.prairielearn(grade(found))["gradable"] is False
    assert '"scores"' not in for_lms.autolab(grade(found))
    assert (line(found, LOST).points, line(found, GIVEN).points) == (0, 30)


@pytest.mark.parametrize(("policy", "word"), [(LEFT_OUT, "are left out"), (LOST, "as lost"), (GIVEN, "gives them")])
def test_each_report_says_what_pending_points_count(policy: PendingPolicy, word: str) -> None:
    said = [
        for_lms.gradescope(grade(PERFECT, policy))["output"], for_lms.prairielearn(grade(PERFECT, policy))["output"],
        for_lms.autolab(grade(PERFECT, policy)), for_lms.classroom(grade(PERFECT, policy))["message"],
        " ".join(feedback.with_grade(PERFECT, line(PERFECT, policy), policy)["notes"]),
    ]  # fmt: skip
    assert all("30 points were not measured" in text and word in text for text in said), said
