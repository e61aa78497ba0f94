"""A class on one page, counted, linked, escaped and small; and its speeds, ranked under chosen names alone."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gradekit.batch import course_pages
from gradekit.batch.class_folder import ClassFolder, GradingSession
from gradekit.batch.gradebook import Line
from gradekit.batch.intake import HandIn
from gradekit.batch.policy import load
from gradekit.cli import main
from gradekit.findings import Cause, Kind
from tests.plugin.samples import laid_out
from tests.report import test_speed
from tests.report.samples import FAILED, PASSED, PENDING, record
from tests.report.test_lms import NASTY
from tests.report.test_page import Tags


def line(student: str, digest: str = "wrong", **changes: Any) -> Line:
    return replace(Line(student, "softmax", "graded", 40.0, 70.0, digest=digest), **changes)


CLASS = [
    line("ada", "right"), line("bob"), line("cyd/../x", name="Cyd"), line("dan", penalty=10.0),
    Line("eve", "softmax", "missing"), Line("fay", "softmax", "fault", note="the grader's process died"),
]  # fmt: skip


def records_of(lines: list[Line], **by_digest: Any) -> dict[str, Any]:
    """By student, what the submission that counts came to."""
    known = {"right": record(PASSED), "wrong": record(PASSED, FAILED)} | by_digest
    return {line.student: known[line.digest] for line in lines if line.digest in known}


RECORDS = records_of(CLASS)


def test_it_says_how_many_there_are_and_who_needs_attention() -> None:
    text = Tags(course_pages.class_page("softmax", CLASS, RECORDS)).text
    assert "6 students: 4 graded, 1 missing, 1 not graded, 1 late" in text
    for said in ("Nothing handed in", "the grader's process died", "Late", FAILED.title, "missing-mask 3"):
        assert said in text, said


def test_each_student_is_linked_to_a_report_within_the_folder() -> None:
    tags = Tags(course_pages.class_page("softmax", CLASS, RECORDS)).tags
    links = {attributes["href"] for tag, attributes in tags if tag == "a"} - {"gradebook.csv"}
    assert "feedback/ada/report.html" in links and any("cyd_.._x" in str(link) for link in links)
    assert all(str(link).startswith("feedback/") and "/../" not in str(link) for link in links)


def test_students_stand_beside_each_other_check_by_check() -> None:
    shown = course_pages.class_view("softmax", CLASS, RECORDS)
    assert shown["columns"] == [PASSED.title, FAILED.title]
    cells = {line.student: cells for line, cells in shown["students"]}
    assert (cells["ada"], cells["bob"], cells["eve"]) == (["passed", ""], ["passed", "failed"], ["", ""])


def test_what_a_person_accepted_is_no_failure_of_the_class() -> None:
    theirs = replace(FAILED, earned=15.0, details={"points_by": "ta"})
    shown = course_pages.class_view("softmax", CLASS, RECORDS | {"bob": record(PASSED, theirs)})
    assert {line.student: cells for line, cells in shown["students"]}["bob"] == ["passed", "accepted"]
    assert "bob" not in {line.student for row in shown["checks"] for line in row["students"]}


def test_parametrized_cases_of_one_check_are_one_row_and_each_student_counts_once() -> None:
    cases = [replace(FAILED, id=f"test_dtypes[{dtype}]", title=f"Keeps the dtype [{dtype}]") for dtype in ("a", "b")]
    shown = course_pages.class_view("softmax", [line("bob")], {"bob": record(*cases)})
    assert [(row["title"], row["failed"], row["causes"]) for row in shown["checks"]] == [("Keeps the dtype", 1, "missing-mask 1")]
    assert shown["columns"] == ["Keeps the dtype"]


def test_every_cause_is_listed() -> None:
    many = [replace(FAILED, cause=cause) for cause in list(Cause)[:6]]
    records = {f"s{number}": record(check) for number, check in enumerate(many)}
    (row,) = course_pages.class_view("softmax", [line(f"s{n}", str(n)) for n in range(6)], records)["checks"]
    assert all(f"{cause} 1" in row["causes"] for cause in list(Cause)[:6])


def test_students_with_one_mistake_are_one_group() -> None:
    (mistake,) = course_pages.class_view("softmax", CLASS, RECORDS)["mistakes"]
    assert [line.name or line.student for line in mistake["students"]] == ["bob", "Cyd", "dan"]
    assert mistake["text"] == "x = tl.load(x_ptr + offs)"


def test_every_measured_student_stands_in_one_bar() -> None:
    counts = course_pages.class_view("softmax", CLASS, RECORDS)["distribution"]["counts"]
    assert sum(counts) == 4 and counts[5] == 4  # 40 of 70


def test_nothing_that_a_student_chose_becomes_a_tag() -> None:
    nasty = NASTY + "<script>alert(1)</script>"
    odd = [line(nasty, name=nasty, note=nasty), line("b" + nasty, name=nasty, note=nasty)]
    wrong = record(replace(FAILED, title=nasty))
    plain = [line("a", name="n", note="n"), line("b", name="n", note="n")]
    hostile, usual = (Tags(course_pages.class_page("softmax", lines, records_of(lines, wrong=wrong))).tags for lines in (odd, plain))
    assert [tag for tag, _ in hostile] == [tag for tag, _ in usual]


def test_a_thousand_students_take_less_than_three_megabytes() -> None:
    lines = [line(f"student{number:04d}", name=f"Student Number {number}") for number in range(1000)]
    assert len(course_pages.class_page("softmax", lines, records_of(lines))) < 3_000_000


def test_a_class_without_results_is_a_page_too() -> None:
    assert "no students yet" in course_pages.class_page("softmax", [], {})


# --- speeds are ranked with ties, under chosen names alone ------------------------------------------------------------


def timed(value: float, width: float) -> dict[str, Any]:
    ratios = {"eager": {"value": value, "low": value - width, "high": value + width}}
    check = replace(PASSED, id="test_speed", title="Is fast", kind=Kind.SPEED, details={"speed": {"size": "4096", "ratios": ratios}})
    return record(PASSED, check)


TIMED = {
    "ada": timed(2.0, 0.1), "bob": timed(1.95, 0.1), "cyd": timed(1.8, 0.05), "dan": timed(1.0, 0.01),
    "eve": record(PASSED, PENDING),
}  # fmt: skip


def test_whose_intervals_overlap_share_a_rank() -> None:
    (found,) = course_pages.speeds(TIMED).values()
    assert [(rank, speed.student) for rank, speed in course_pages.ranked(found)] == [(1, "ada"), (1, "bob"), (3, "cyd"), (4, "dan")]


def test_only_who_chose_a_name_is_on_the_board() -> None:
    page = course_pages.board("softmax", course_pages.speeds(TIMED), {"ada": "Queen", "dan": "Slow <b>", "eve": "Eve!"})
    assert "Queen" in page and "Slow &lt;b&gt;" in page and "2 (1.9 to 2.1)" in page
    assert not [name for name in ("ada", "bob", "cyd", "Eve!") if name in page]
    assert course_pages.board("softmax", course_pages.speeds(TIMED), {"eve": "Eve!"}) == ""


def test_a_wrong_kernel_has_no_rank_however_fast() -> None:
    wrong = TIMED["ada"] | {"checks": [*TIMED["ada"]["checks"], *record(FAILED)["checks"]]}
    (found,) = course_pages.speeds(TIMED | {"ada": wrong}).values()
    assert [speed.student for speed in found] == ["bob", "cyd", "dan"]
    assert not list(course_pages.standing("ada", {"Is fast, 4096": found}))


def test_a_student_reads_where_they_stand_and_nobodys_name() -> None:
    found = course_pages.speeds(TIMED)
    (said,) = course_pages.standing("bob", found)
    assert "1 of 3 others" not in said and "0 of 3 others are faster, 1 slower" in said
    assert not list(course_pages.standing("eve", found)) and "ada" not in said


def test_a_leaderboard_is_one_that_course_toml_asks_for(tmp_path: Path) -> None:
    (tmp_path / "course.toml").write_text('[assignments.a]\nleaderboard = {ada = "Q"}\n[assignments.b]\n')
    found = load(tmp_path / "course.toml")
    assert found.policy("a").leaderboard == {"ada": "Q"} and found.policy("b").leaderboard is None


def test_who_leaves_the_board_is_on_it_no_longer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADEKIT_ASSIGNMENTS", str(laid_out(tmp_path)))
    folder = ClassFolder.open(tmp_path / "out", new=True)
    folder.store.add_hand_ins("double", [HandIn("ada", tmp_path / "ada.py", digest="d")])
    folder.store.add_result(GradingSession(folder, "double").grading.key("d"), record(test_speed.TIMED), "host")
    board = folder.of("double") / "leaderboard.html"
    for names, is_there in (('{ada = "Queen"}', True), ("{}", False)):
        (folder.path / "course.toml").write_text(f"[assignments.double]\nleaderboard = {names}\n")
        words = ["mark", "ada", "test_speed", "-a", "double", "-o", str(folder.path), "--why", "Well done."]
        assert CliRunner().invoke(main, words, catch_exceptions=False).exit_code == 0
        assert board.is_file() is is_there
