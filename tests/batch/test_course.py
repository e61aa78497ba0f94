"""A course of several assignments: one folder, one grade book, and what each student has in all of them."""

import itertools
from pathlib import Path

import pytest

from gradekit.assignment import UsageError
from gradekit.batch import course_pages, gradebook
from gradekit.batch.gradebook import Line
from gradekit.batch.policy import Course, Policy, load
from tests.batch.standin import Stand, tried, tried_in_a_container
from tests.lms import container


def line(student: str, id: str, points: float, status: str = "graded", **more: object) -> Line:
    return Line(student, id, status, points, 50, **more)  # type: ignore[arg-type]


LINES = {
    "a": [line("ada", "a", 50, name="Ada", digest="x"), line("bob", "a", 25)],
    "b": [line("ada", "b", 40), line("cyd", "b", 0, "fault")],
    "c": [line("ada", "c", 0, "rejected"), line("bob", "c", 50), line("cyd", "c", 10)],
}
WEIGHTS = {"a": Policy(), "b": Policy(weight=2), "c": Policy(weight=1, excused=("bob",))}


def totals(**course: object) -> dict[str, float | None]:
    return {row.student: row.total for row in gradebook.course_rows(LINES, Course("K", WEIGHTS, **course))}  # type: ignore[arg-type]


def test_the_total_is_the_weighted_mean_of_what_counts() -> None:
    assert totals() == {
        "ada": 65.0,  # (1 * 1 + 0.8 * 2 + 0 * 1) / 4
        "bob": 16.666666667,  # (0.5 * 1 + 0 * 2) / 3: nothing handed in is 0, and who is excused from c has no c
        "cyd": 10.0,  # (0 * 1 + 0.2 * 1) / 2: a fault of the grader counts neither way
    }


def test_the_lowest_are_dropped_and_one_always_counts() -> None:
    assert totals(drop_lowest=1) == {"ada": 86.666666667, "bob": 50.0, "cyd": 20.0}
    assert totals(drop_lowest=9) == {"ada": 100.0, "bob": 50.0, "cyd": 20.0}


def test_of_equal_shares_the_one_that_weighs_most_is_dropped() -> None:
    lines = {"a": [line("ada", "a", 0)], "b": [line("ada", "b", 0)], "c": [line("ada", "c", 50)]}
    (row,) = gradebook.course_rows(lines, Course("K", WEIGHTS, drop_lowest=1))
    assert row.dropped == ("b",) and row.total == 50.0  # without a: 1 / 3


def test_what_is_dropped_leaves_the_highest_total_as_canvas_has_it() -> None:
    """The example in Canvas's guide: 100 % of 50 points, 65 % of 100, 50 % of 24"""
    lines = {"a": [line("ada", "a", 50)], "b": [line("ada", "b", 32.5)], "c": [line("ada", "c", 25)]}
    weights = {"a": Policy(weight=50), "b": Policy(weight=100), "c": Policy(weight=24)}
    (row,) = gradebook.course_rows(lines, Course("K", weights, drop_lowest=1))
    assert row.dropped == ("b",) and row.total == pytest.approx(100 * 62 / 74)
    best = max(
        sum(w * s for w, s in kept) / sum(w for w, _ in kept)
        for kept in itertools.combinations([(3, 0.2), (1, 0.9), (2, 0.5), (5, 0.4), (1, 0.0)], 3)
    )
    shares = dict(enumerate([0.2, 0.9, 0.5, 0.4, 0.0]))
    assert gradebook._kept(shares, dict(enumerate([3, 1, 2, 5, 1])), 3)[1] == pytest.approx(best)  # type: ignore[arg-type]


def test_what_weighs_nothing_is_shown_and_neither_counts_nor_is_dropped() -> None:
    lines = {"a": [line("ada", "a", 0)], "b": [line("ada", "b", 20)], "c": [line("ada", "c", 10)]}
    weights = {"a": Policy(weight=0), "b": Policy(), "c": Policy()}
    (row,) = gradebook.course_rows(lines, Course("K", weights, drop_lowest=1))
    assert (row.dropped, row.total) == (("c",), 40.0)
    (row,) = gradebook.course_rows(lines, Course("K", dict.fromkeys("abc", Policy(weight=0))))
    assert (row.dropped, row.total) == ((), None)


def test_the_courses_csv_has_a_line_for_each_student() -> None:
    rows = gradebook.course_rows(LINES, Course("K", WEIGHTS, drop_lowest=1))
    assert gradebook.course_csv(rows, list(LINES)) == (
        "student,name,email,a,b,c,total,dropped\nada,Ada,,100,80,0,86.67,c\nbob,,,50,0,EX,50,b\ncyd,,,0,,20,20,a\n"
    )


def test_the_pages_say_it_too() -> None:
    course = Course("K", WEIGHTS, drop_lowest=1)
    rows = gradebook.course_rows(LINES, course)
    page = course_pages.course_page(course, LINES, rows)
    assert 'href="a/index.html"' in page and 'href="students/ada/index.html"' in page and "(0)" in page
    own = course_pages.student_page(course, rows[0])
    assert "Total: 86.67 %" in own and 'href="../../b/feedback/ada/report.html"' in own and "bob" not in own
    assert "<script" not in page + own and "://" not in page + own


@pytest.mark.parametrize(("text", "said"), [
    ("[course]\nweigth = 1\n", "course.toml:2: course.weigth is no key"),
    ("[course]\ndrop_lowest = -1\n", "drop_lowest is -1, but must be 0 or more"),
    ("course = 3\n", "course is 3, but must be a table"),
    ('[course]\npending = "gone"\n', "pending is 'gone', which it cannot be .there are left out, lost, given"),
    ("[course]\nassignments = 3\n", "assignments is 3, but must be a list"),
])  # fmt: skip
def test_what_a_courses_file_must_not_say_is_told(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "course.toml").write_text(text)
    with pytest.raises(UsageError, match=said):
        load(tmp_path / "course.toml")


def test_a_courses_file_names_its_assignments_in_order(tmp_path: Path) -> None:
    (tmp_path / "course.toml").write_text(
        '[course]\nassignments = ["b", "a"]\npending = "lost"\n[assignments.a]\npending = "given"\nweight = 2\n'
    )
    found = load(tmp_path / "course.toml")
    assert list(found.policies) == ["b", "a"] and found.policy("a").weight == 2
    assert [found.policy(id).pending for id in ("b", "a", "other")] == ["lost", "given", "lost"]


@pytest.mark.sample(2, of="classes")
def test_a_stand_in_course_comes_out_right_by_hand(tmp_path: Path) -> None:
    tried(Stand(tmp_path, ("double", "twice"), (), 7, kills=0))


@pytest.mark.slow
def test_a_course_with_a_built_in_assignment_survives_a_kill(tmp_path: Path) -> None:
    tried(Stand(tmp_path, ("double",), ("vector_add",), 8))


@pytest.mark.slow
@pytest.mark.skipif(not container.possible(), reason="needs a container")
def test_a_container_counts_the_hidden_tests_of_a_stand_in_course(tmp_path: Path) -> None:
    course = Stand(tmp_path, ("double",), (), 0)
    course.lay_out()
    tried_in_a_container(course)
