"""From results, people's marks and the policy to the grade book, the summary and the feedback."""

import hashlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gradekit.batch import course_pages, feedback, gradebook, summary
from gradekit.batch.gradebook import Line
from gradekit.batch.intake import HandIn, Student
from gradekit.batch.policy import Course, LatePolicy, Policy
from gradekit.findings import Status
from gradekit.marks import Mark
from gradekit.report.rests_on import rests_on
from gradekit.report.translation import say
from tests.report.samples import FAILED, FAULT, PASSED, PENDING, REJECTED, record

DUE = datetime(2026, 12, 1, tzinfo=UTC)
DAY = timedelta(days=1)
RIGHT, WRONG = record(PASSED, PENDING), record(PASSED, FAILED)
BROKEN = record(status=Status.FAULT, message="ValueError: oh")
RECORDS = {"right": RIGHT, "wrong": WRONG, "rejected": record(**REJECTED), "broken": BROKEN}


def handed(student: str, digest: str, when: datetime | None = None) -> HandIn:
    return HandIn(student, Path(f"{student}.py"), student.title(), submitted=when, digest=digest)


def marked(student: str, check: str, points: float | None) -> dict[tuple[str, str], Mark]:
    return {(student, check): Mark(points, "tutor", "seen on my card", made=DUE)}


def lines(given: list[tuple[HandIn, str]], **changes: Any) -> list[Line]:
    values: dict[str, Any] = {"records": RECORDS, "marks": {}, "policy": Policy(due=DUE)} | changes
    return gradebook.lines("softmax", given, **values)


def test_every_student_has_one_line() -> None:
    given = [handed("ada", "right"), handed("bob", "wrong"), handed("cyd", "rejected"), handed("dan", "broken")]
    found = lines(given, roster=[Student("ada"), Student("eve", "Eve", "e@x.y")])
    assert [(line.student, line.status, line.points, line.pending) for line in found] == [
        ("ada", "graded", 70, 30), ("bob", "graded", 40, 0), ("cyd", "rejected", 0, 0), ("dan", "fault", 0, 0),
        ("eve", "missing", 0, 0),
    ]  # fmt: skip


def test_what_is_not_graded_yet_is_no_fault() -> None:
    found = lines([handed("ada", "right"), handed("bob", "not yet"), handed("cyd", "broken")])
    assert [line.status for line in found] == ["graded", "to do", "fault"]
    said = course_pages.status(Course(), {"softmax": found})
    assert " ".join(said.splitlines()[0].split()) == "assignment due graded rejected pending fault to do missing median %"
    assert "--resume, goes on" in said and "--resume" not in course_pages.status(Course(), {"softmax": found[:1]})


def test_a_persons_mark_wins_and_says_why() -> None:
    (line,) = lines([handed("ada", "wrong")], marks=marked("ada", "test_matches_torch", 25))
    assert line.points == 65
    own = gradebook.marked(WRONG, "ada", marked("ada", "test_matches_torch", 25))
    assert (own["checks"][1]["message"], own["checks"][1]["outcome"]) == ("seen on my card (marked by tutor)", "failed")
    assert gradebook.marked(WRONG, "bob", marked("ada", "test_matches_torch", 25)) == WRONG


def test_a_persons_mark_settles_what_is_pending() -> None:
    own = gradebook.marked(RIGHT, "ada", marked("ada", "test_speed", 30))
    assert own["score"] == {"earned": 70, "possible": 70, "pending": 0}
    assert own["checks"][1]["outcome"] == "passed"


def test_a_fault_does_not_cost_an_earlier_attempt() -> None:
    (line,) = lines([handed("ada", "wrong", DUE - DAY), handed("ada", "broken", DUE)])
    assert (line.status, line.points, line.attempts) == ("graded", 40, 2)


def test_lateness_costs_and_is_noted() -> None:
    policy = Policy(due=DUE, late=LatePolicy(percent_a_day=10))
    (line,) = lines([handed("ada", "wrong", DUE + DAY)], policy=policy)
    assert (line.points, line.penalty, line.note) == (36, 10, "1 day late: 10 % less")


# --- the summary --------------------------------------------------------------------------------------------------------


def test_the_summary_tells_the_class_at_a_glance() -> None:
    ratios = {"eager": {"value": 1.47}, "compiled": {"value": 1.2}}
    asked = [{"side": "eager", "at_least": 1.5}, {"side": "compiled", "at_least": 0.7}]
    speed = {"ratios": ratios, "verdicts": asked}
    close = record(PASSED, FAILED.__class__(**vars(PASSED) | {"id": "test_fast", "details": {"speed": speed}}))
    records = RECORDS | {"close": close}
    given = [handed(f"s{i}", digest) for i, digest in enumerate(records)]
    text = summary.render(lines(given, records=records), records)
    assert "5 students: 3 graded, 1 rejected, 1 not graded" in text
    assert "   1  Agrees with torch.softmax on any shape, dtype and stride  (missing-mask 1)" in text
    assert "rejected as a whole: syntax-error 1" in text
    assert "  1.470 of 1.5  Agrees with torch.softmax" in text and "of 0.7" not in text
    assert "     1  Speed is measured on a GPU, and this machine has none." in text
    assert "not graded, by no fault of theirs (1): S3 (s3)" in text and "ValueError: oh" in text


def test_the_cases_of_a_check_are_one_row_of_the_summary() -> None:
    cases = [replace(FAILED, id=f"test_dtypes[{dtype}]", title=f"Keeps the dtype [{dtype}]") for dtype in ("a", "b")]
    assert summary.render([], {}) == "no students yet\n"
    text = summary.render([], {"one": record(*cases), "other": record(*cases)})
    assert "     2  Keeps the dtype  (missing-mask 2)\n" in text and "[a]" not in text


def test_the_summary_says_in_a_sentence_what_full_marks_rest_on() -> None:
    rests = {"proved": 1, "open": 0, "exact": 2, "not_exact": 0, "examples": 5, "unseen": []}
    text = summary.render([], {"one": record(PASSED) | {"rests_on": rests}})
    said = "1 submission without a failure, with nothing unseen (on the whole 5 examples, 1 claim proved, 2 formulas right"
    assert said in text


def test_the_summary_lists_who_decides_by_what_nothing_follows_or_no_call_has_shown() -> None:
    named = {"line": 41, "what": "`str(n)` depends on text, through which sizes are not followed"}
    ways = {"line": 43, "seen": [], "unseen": ["N == 4099 is true"]}
    branches = {"decisions": [ways], "unfollowed": [named]}
    checks = [{**check, "details": {"coverage": {"branches": branches}}} for check in RIGHT["checks"]]
    for rests, said in (({}, ""), ({"rests_on": rests_on(checks)}, "; line 43: no call in which N == 4099 is true")):
        records = {"right": {**RIGHT, "checks": checks, **rests}}
        text = summary.render(lines([handed("ada", "right")], records=records), records, width=200)
        told = "(ada)  line 41: `str(n)` depends on text, through which sizes are not followed"
        assert "for a person to look at" in text and f"{told}{said}\n" in text


def test_the_summary_lists_who_turned_to_the_system() -> None:
    records = {"right": {**RIGHT, "notes": ["│ line 3 turned to the system (os.system)"]}, "wrong": WRONG}
    text = summary.render(lines([handed("ada", "right"), handed("bob", "wrong")], records=records), records)
    section = text.partition("for a person to look at:")[2]
    assert "(ada)  │ line 3 turned to the system (os.system)" in section and "(bob)" not in section


def test_what_is_pending_counts_neither_for_nor_against() -> None:
    text = summary.render(lines([handed("ada", "right")]), {"right": RIGHT})
    assert "points, in percent (median 100, mean 100; of what is measured already):" in text


def test_a_hand_in_that_cannot_be_read_has_none_of_what_the_assignment_is_worth() -> None:
    nothing = record(**REJECTED, checks=())
    found = lines([handed("ada", "right"), handed("bob", "none")], records={"right": RIGHT, "none": nothing})
    assert [(line.status, line.points, line.possible) for line in found] == [("graded", 70, 70), ("rejected", 0, 70)]
    assert summary.line_for("bob", nothing).startswith("bob  rejected: ")


def test_a_submission_in_one_line() -> None:
    assert summary.line_for("ada", RIGHT) == "ada  40 / 70  (30 pending)"
    assert summary.line_for("ada", WRONG).startswith("ada  40 / 70  failed 1: Agrees with")
    assert summary.line_for("\x1b[2Jada", BROKEN) == "\\x1b[2Jada  not graded: ValueError: oh"


# --- the feedback -------------------------------------------------------------------------------------------------------


def test_each_student_has_a_folder_whatever_the_name(tmp_path: Path) -> None:
    alike = ["", "a b", "a_b", "a/b", "x" * 100, "x" * 101, "x" * 102, ".a", "a", "..", "-rf", "rf", "--help", "-", "a-b", "../../etc", "a/b\0c"]
    places = [feedback.write(tmp_path, student, WRONG) for student in alike]
    assert {place.parent for place in places[1:]} == {tmp_path} and len(set(places)) == len(alike)
    assert not any(place.name.startswith("-") for place in places), "which would be taken for an option"
    assert sorted(file.name for file in places[1].iterdir()) == ["report.html", "report.json", "report.txt"]


def test_a_hidden_check_tells_nothing_until_its_time() -> None:
    secret = record(FAILED.__class__(**vars(FAILED) | {"details": {"hidden": True, "detail": "secret"}}), FAULT)
    (hidden, other) = feedback.visible(secret, False)["checks"]
    assert (hidden["title"], hidden["hint"], hidden["counterexample"]) == ("Hidden check", "", None)
    assert hidden["details"] == {"hidden": True}
    assert hidden["possible"] == 30 and other == secret["checks"][1]
    assert feedback.visible(secret, True) == secret


def test_feedback_says_what_the_grade_book_has() -> None:
    policy = Policy(due=DUE, late=LatePolicy(percent_a_day=10), scale=140)
    (line,) = lines([handed("ada", "right", DUE + 2 * DAY)], policy=policy)
    assert (line.points, line.possible, line.pending, line.penalty) == (112, 140, 60, 20)
    said, note = feedback.with_grade(RIGHT, line)["notes"][-2:]
    assert said.startswith("30 points were not measured and are left out")
    assert note == "In the grade book: 112 of 140 points; 20 % were taken off; 2 days late: 20 % less."


def test_late_without_a_time_is_said_and_costs_nothing() -> None:
    hand_in = HandIn("ada", Path("ada.py"), late=True, digest="wrong")
    (line,) = lines([hand_in], policy=Policy(due=DUE, late=LatePolicy(percent_a_day=10)))
    assert (line.points, line.penalty) == (40, 0) and "late, says the LMS" in line.note


def test_a_submission_that_was_not_graded_can_be_marked_as_a_whole() -> None:
    given = [handed("ada", "wrong"), handed("cyd", "rejected"), handed("dan", "broken")]
    both = marked("cyd", "total", 50) | marked("dan", "total", 60)
    found = {line.student: line for line in lines(given, marks=both)}
    assert [(line.status, line.points, line.possible) for line in found.values()] == [
        ("graded", 40, 70), ("graded", 50, 70), ("graded", 60, 70),
    ]  # fmt: skip


def test_a_page_tells_attempt_lateness_penalty_and_total_as_the_grade_book_has_them() -> None:
    late = Line("ada", "softmax", "graded", 63.0, 70.0, penalty=10.0, attempts=3, name="Ada L.", note="2 days late")
    assert dict(feedback.hand_in_facts(late)) == {
        "student": "Ada L. (ada)", "attempt": "the one that counts, of 3", "lateness": "2 days late", "penalty": "10 %",
        "in the grade book": "63 of 70 points",
    }  # fmt: skip
    assert "penalty" not in dict(feedback.hand_in_facts(Line("eve", "softmax", "fault", attempts=1)))


def test_the_source_is_shown_only_where_it_is_what_was_graded(tmp_path: Path) -> None:
    file = tmp_path / "softmax.py"
    file.write_text("def softmax(x):\n    return x\n")
    found = {"submission": {"sha256": hashlib.sha256(file.read_bytes()).hexdigest()}}
    given = [HandIn("ada", tmp_path / "gone.py"), HandIn("ada", file)]
    assert feedback.source(given, "ada", found).startswith("def softmax")
    assert feedback.source(given, "bob", found) == ""
    file.write_text("def softmax(x):\n    return 2\n")
    assert feedback.source(given, "ada", found) == ""


def test_the_summary_is_said_in_the_courses_language(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADEKIT_LANG", "de")
    said = say(summary.render(lines([handed("ada", "right")]), {"right": RIGHT}))
    assert "1 bewertet" in said
    assert "Punkte in Prozent (Median " in said and "offene Prüfungen, die weder für noch gegen" in said
