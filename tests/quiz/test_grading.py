"""Each answer becomes a check: right, wrong with its own feedback, or pending where a machine cannot tell."""

from pathlib import Path
from typing import Any

import pytest

from gradekit import NoSuchCheck
from gradekit.assignment import Assignment, AssignmentError, get, of_path
from gradekit.course.start import start
from gradekit.findings import Cause, Check, Outcome, Report, Status
from gradekit.quiz import digest, load
from gradekit.quiz import grade as ask
from gradekit.report.record import to_dict, validate
from gradekit.report.terminal import render
from tests.beside import beside
from tests.graded import grade
from tests.small import laid_out

QUESTIONS = beside(__file__)["questions"]
KEY = beside(__file__)["key"]


@pytest.fixture
def quiz(tmp_path: Path) -> Assignment:
    return laid_out(tmp_path, "quiz", "answers", {"questions.toml": QUESTIONS, "solutions/key.toml": KEY}, 'kind = "quiz"\n')


def answered(quiz: Assignment, text: str, **options: Any) -> Report:
    (path := quiz.folder / "answers.toml").write_text(text)
    return grade(quiz, path, **options)


def checks(quiz: Assignment, text: str, **options: bool) -> dict[str, Check]:
    return {check.id: check for check in answered(quiz, text, **options).checks}


def outcome(check: Check) -> tuple[Outcome, float, Cause | None]:
    return check.outcome, check.earned, check.cause


def test_without_the_key_a_choice_is_recorded_and_pending(quiz: Assignment) -> None:
    assert quiz.solutions
    (quiz.solutions / "key.toml").unlink()
    check = checks(quiz, 'grid = "a"')["grid"]
    assert outcome(check) == (Outcome.PENDING, 0, None)
    assert check.message == "Recorded: a: Nine"


def test_a_key_beside_the_questions_serves_for_practice(quiz: Assignment) -> None:
    assert quiz.solutions
    (quiz.solutions / "key.toml").rename(quiz.folder / "key.toml")
    assert outcome(checks(quiz, 'grid = "b"')["grid"]) == (Outcome.PASSED, 4, None)


def test_a_short_answer_waits_for_a_person(quiz: Assignment) -> None:
    check = checks(quiz, 'why = "It hits the wall."')["why"]
    assert outcome(check) == (Outcome.PENDING, 0, None)
    assert check.message == "Recorded (4 words). A person marks this answer."
    assert check.details == {"answer": digest("It hits the wall.")}


@pytest.mark.parametrize(("answer", "expected", "said"), [
    ('grid = "b"', (Outcome.PASSED, 4, None), "b: 24\nYes."),
    ('grid = "Nine"', (Outcome.FAILED, 0, Cause.WRONG_ANSWER), "a: Nine\nThat is the sum."),
    ('grid = ""', (Outcome.FAILED, 0, Cause.NO_ANSWER), ""),
    ('grid = "  "', (Outcome.FAILED, 0, Cause.NO_ANSWER), ""),
    ('grid = "c"', (Outcome.FAILED, 0, Cause.NO_ANSWER), ""),
    ('why = "Memory bandwidth."', (Outcome.PASSED, 10, None), ""),
    ('why = "the cpu"', (Outcome.FAILED, 0, Cause.WRONG_ANSWER), ""),
    ('why = "not memory bandwidth"', (Outcome.PENDING, 0, None), ""),
])
def test_a_choice_gets_its_own_feedback_and_a_short_answer_is_settled_only_where_the_whole_of_it_is_listed(
    quiz: Assignment, answer: str, expected: tuple[Outcome, float, Cause | None], said: str
) -> None:
    check = checks(quiz, answer)[answer.partition(" ")[0]]
    assert outcome(check) == expected
    assert check.message == said or not said


def test_the_staff_see_the_answer_beside_the_rubric(quiz: Assignment) -> None:
    details = checks(quiz, 'why = "It hits the Wall."', hidden=True)["why"].details
    assert details["rubric"] == [{"points": 10.0, "says": "names the bandwidth", "found": ["wall"]}]
    assert (details["text"], details["model"]) == ("It hits the Wall.", "Bandwidth.")


def test_a_file_that_cannot_be_read_is_rejected_with_every_check(quiz: Assignment) -> None:
    report = answered(quiz, "grid = b\n")
    assert (report.status, report.cause, report.score.earned) == (Status.REJECTED, Cause.SYNTAX_ERROR, 0)
    assert [check.id for check in report.checks] == ["grid", "why"]


def test_a_keyword_selects_questions_by_name(quiz: Assignment) -> None:
    assert [check.id for check in answered(quiz, "", keyword="wh or other").checks] == ["why"]
    with pytest.raises(NoSuchCheck, match="there are grid, why"):
        answered(quiz, "", keyword="zzz")


def test_the_report_is_a_record_like_any_other(quiz: Assignment) -> None:
    data = to_dict(answered(quiz, 'grid = "b"\nwhy = "x"\n'))
    validate(data)
    text = render(data)
    assert "      b: 24\n      Yes.\n" in text
    assert "GPU" not in text


def test_answers_name_their_assignment(quiz: Assignment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADEKIT_ASSIGNMENTS", str(quiz.folder.parent))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "answers.toml").write_text('assignment = "quiz"\n')
    assert of_path(tmp_path / "mine").id == of_path(tmp_path / "mine" / "answers.toml").id == "quiz"


@pytest.mark.parametrize(("change", "complaint"), [
    (('right = "b"', 'right = "c"'), "grid needs the right choice"),
    (('a = "That is the sum."', ""), "feedback for each choice"),
    (("[grid", "[grit"), "answers grit"),
    (("points = 10\nsays", "points = 9\nsays"), "must add up to 10"),
    (("points = 10\nfeedback", "points = 11\nfeedback"), "more than its 10"),
    (('says = "names the bandwidth"', ""), "why lacks 'says'"),
])
def test_a_key_that_could_not_be_fair_is_refused(quiz: Assignment, change: tuple[str, str], complaint: str) -> None:
    assert quiz.solutions
    (quiz.solutions / "key.toml").write_text(KEY.replace(*change))
    with pytest.raises(AssignmentError, match=complaint):
        load(quiz)


def test_a_quiz_without_answers_blames_no_question_for_the_others(tmp_path: Path) -> None:
    start(get("lesson"), tmp_path)
    text = render(to_dict(ask(get("lesson"), tmp_path)))
    assert text.count("Not answered yet.") == 1 and "Begin with the first" not in text
