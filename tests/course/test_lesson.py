"""The lesson's questions are fair, its papers agree, and what students get does not hold the answers that count."""

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch
import triton

from gradekit.assignment import Assignment, discover
from gradekit.course.release import release
from gradekit.course.start import start
from gradekit.engine.executor import run
from gradekit.findings import Outcome, Report
from gradekit.inputs.spec import Input
from gradekit.quiz import Question, load
from gradekit.sandbox import Tracer
from gradekit.submission import read
from tests.graded import grade
from tests.patience import GUARD

ROOT = Path(__file__).parents[2]
LESSON = discover(ROOT / "assignments")["lesson"]
READING = LESSON.folder / "reading.md"


def questions() -> list[Question]:
    return load(LESSON)


def choices() -> list[Question]:
    return [question for question in questions() if question.choices]


def public(tmp_path: Path) -> Assignment:
    """The lesson as students have it: without the staff's folder."""
    release(LESSON, tmp_path / "assignments")
    return discover(tmp_path / "assignments")["lesson"]


# --- the questions ----------------------------------------------------------------------------------------------------


def test_there_are_twenty_questions_with_choices_three_without_and_a_hundred_points() -> None:
    assert (len(choices()), len(questions())) == (20, 23)
    assert sum(question.points for question in questions()) == 100
    assert [question.title for question in questions() if len(question.title) > 62] == [], "a report has a line for each"


def test_every_choice_has_feedback_of_its_own_the_right_ones_alone_says_yes_and_each_letter_is_right_as_often() -> None:
    for question in choices():
        assert question.key is not None
        assert len(set(question.key.feedback.values())) == len(question.choices) == 4, question.id
        saying = {letter for letter, text in question.key.feedback.items() if text.startswith("Yes")}
        assert saying == {question.key.right}, question.id
    assert Counter(question.key.right for question in choices() if question.key) == dict.fromkeys("abcd", 5)


def test_a_short_answer_that_is_certain_is_never_in_two_lists() -> None:
    for question in questions():
        listed = [answer for certain in question.key.certain for answer in certain["answers"]] if question.key else []
        assert len(listed) == len(set(listed)), question.id


@pytest.mark.parametrize("letter", "abcd")
def test_the_same_letter_everywhere_earns_little(tmp_path: Path, letter: str) -> None:
    path = tmp_path / "answers.toml"
    path.write_text("".join(f'{question.id} = "{letter}"\n' for question in choices()))
    assert grade(LESSON, path).score.earned <= 25


def test_the_solution_leaves_only_a_persons_work_to_do() -> None:
    assert LESSON.solution
    report = grade(LESSON, LESSON.solution)
    waiting = [check.id for check in report.checks if check.outcome is not Outcome.PASSED]
    assert waiting == ["case_fusion", "case_python"]


# --- what students have -----------------------------------------------------------------------------------------------


def grade_as_a_student(tmp_path: Path) -> Report:
    assert LESSON.solution
    return grade(public(tmp_path), LESSON.solution)


def test_students_learn_at_once_about_the_practice_questions_alone(tmp_path: Path) -> None:
    report = grade_as_a_student(tmp_path)
    assert [check.id for check in report.checks if check.outcome is Outcome.PASSED] == [q.id for q in questions()[:5]]
    assert {check.outcome for check in report.checks[5:]} == {Outcome.PENDING}
    assert report.score.pending == 90


def test_what_counts_is_not_in_the_students_half(tmp_path: Path) -> None:
    folder = public(tmp_path).folder
    text = "\n".join(path.read_text(encoding="utf-8") for path in folder.iterdir())
    keys = [question.key for question in questions()[5:] if question.key]
    secrets = [words for key in keys for words in (*key.feedback.values(), key.model) if words]
    assert len(secrets) == 15 * 4 + 3
    assert [words for words in secrets if words in " ".join(text.split())] == []


def test_the_handout_says_what_is_worth_what() -> None:
    text = LESSON.handout.read_text(encoding="utf-8")
    rows = re.findall(r"^\| .+ \| (\d+) each \|$", text, flags=re.MULTILINE)
    worth = list(dict.fromkeys(question.points for question in questions()))
    assert list(map(float, rows)) == worth
    assert len(text.split()) < 1000


# --- the reading ------------------------------------------------------------------------------------------------------


def test_the_reading_shows_every_stage_of_one_kernel() -> None:
    text = READING.read_text(encoding="utf-8")
    for sign in ("@triton.jit", "tt.make_range", "#ttg.blocked<", "define ptx_kernel", "ld.global.v2.b32"):
        assert sign in text
    assert str(ROOT) not in text


def test_the_reading_is_what_the_script_makes(tmp_path: Path) -> None:
    text = READING.read_text(encoding="utf-8")
    if f"Triton {triton.__version__} makes" not in text:
        pytest.skip("the page was made with another Triton")
    environment = os.environ | {"TRITON_CACHE_DIR": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-W", "ignore", str(ROOT / "tools" / "reading.py")]
    made = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=GUARD)
    assert made.stdout == text


# --- tiles of two dimensions ------------------------------------------------------------------------------------------

TILES = LESSON.folder / "tiles.py"


@pytest.mark.parametrize("shape", [(6, 3), (1, 1), (5, 8), (4, 17)])
def test_the_kernel_on_tiles_is_right_and_stays_inside_its_tensors(shape: tuple[int, int]) -> None:
    """... as gradekit runs it, without a card"""
    x = Input("float32", shape, (1, shape[0]), seed=3)
    with Tracer(read(TILES, entry="centre")) as tracer:
        tracer.load()
        program = tracer.trace("centre", [x.view(0)])
    done = run(program, [x.tensor()])
    wanted = x.tensor() - x.tensor().mean(1, keepdim=True)
    assert torch.allclose(done.results[0], wanted.T, atol=1e-5)
    assert not done.findings


def test_the_page_on_tiles_shows_lines_of_its_kernel() -> None:
    kernel = TILES.read_text(encoding="utf-8")
    page = (LESSON.folder / "tiles.md").read_text(encoding="utf-8")
    shown = [line for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) for line in block.splitlines()]
    code = {re.sub(r"\s*#.*", "", line).strip() for line in kernel.splitlines()}
    assert {re.sub(r"\s*#.*", "", line) for line in shown} - code == {"x - mean"}


def test_the_kernel_on_tiles_runs_as_a_script_and_comes_with_the_lesson(tmp_path: Path) -> None:
    start(LESSON, tmp_path / "lesson")
    command = [sys.executable, "-W", "ignore", str(tmp_path / "lesson" / "tiles.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=GUARD)
    made, _, right = done.stdout.partition("right:\n")
    assert made.endswith(right) and "tensor" in right
