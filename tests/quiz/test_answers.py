"""Answers are read from TOML or from a notebook's cells, in whatever form a student writes them."""

import json
from pathlib import Path

import pytest

from gradekit.findings import Cause
from gradekit.quiz import Question, blank, digest, letter, locate, read, unknown
from gradekit.submission import NoSuchSubmission, SubmissionError

GRID = Question("grid", "A grid", 4, "How many programs?", {"a": "Nine of them.", "b": "24"})
WHY = Question("why", "Why", 10, "Why is that?")


def notebook(*cells: str) -> str:
    return json.dumps({"cells": [{"cell_type": "code", "source": cell.splitlines(True)} for cell in cells]})


def test_answers_are_text_whatever_they_were_written_as(tmp_path: Path) -> None:
    path = tmp_path / "answers.toml"
    path.write_text('assignment = "lesson"\ngrid = " b "\nnumber = 24\nwhy = """\nBecause.\n"""\nlist = [1]\n')
    assert read(path).given == {"assignment": "lesson", "grid": "b", "number": "24", "why": "Because."}


def test_a_notebooks_cells_hold_the_same_lines_and_the_last_one_counts(tmp_path: Path) -> None:
    path = tmp_path / "answers.ipynb"
    path.write_text(notebook('grid = "a"\nwhy = """\nBecause.\n"""', "%gradekit lesson", "grid = ", 'grid = "b"'))
    assert read(path).given == {"grid": "b", "why": "Because."}


def test_nothing_in_a_notebook_is_run(tmp_path: Path) -> None:
    path = tmp_path / "answers.ipynb"
    path.write_text(notebook(f"open({str(tmp_path / 'made')!r}, 'w')\ngrid = chr(98)"))
    assert read(path).given == {}
    assert not (tmp_path / "made").exists()


def test_the_starter_is_toml_and_python_at_once(tmp_path: Path) -> None:
    text = blank("lesson", "A lesson", [GRID, WHY])
    (tmp_path / "answers.toml").write_text(text)
    (tmp_path / "answers.ipynb").write_text(notebook(text))
    empty = {"assignment": "lesson", "grid": "", "why": ""}
    assert read(tmp_path / "answers.toml").given == read(tmp_path / "answers.ipynb").given == empty
    assert '# 1. How many programs?\n#    a  Nine of them.\n#    b  24\ngrid = ""\n' in text


@pytest.mark.parametrize(("before", "line"), [("why = because\n", "why = because"), ("why = [\n1,\n", "1,")])
def test_a_line_that_is_not_toml_is_named(tmp_path: Path, before: str, line: str) -> None:
    """Where no line is at fault, but the end of the file, it is the last one"""
    path = tmp_path / "answers.toml"
    path.write_text('grid = "a"\n' + before)
    with pytest.raises(SubmissionError) as caught:
        read(path)
    assert caught.value.cause is Cause.SYNTAX_ERROR
    assert caught.value.source is not None
    assert (caught.value.source.line, caught.value.source.text) == (1 + before.count("\n"), line)


@pytest.mark.parametrize(("name", "data", "said"), [
    ("a.toml", b"\xff\xfe", "not UTF-8"),
    ("a.ipynb", b"{}", "not a well-formed notebook"),
    ("a.ipynb", b"[" * 100_000, "not a well-formed notebook"),
    ("a.toml", b"x = " + b"[" * 100_000, "not TOML"),
])
def test_a_file_that_cannot_be_read_is_refused_with_a_reason(tmp_path: Path, name: str, data: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(SubmissionError, match=said):
        read(tmp_path / name)


def test_in_a_folder_the_answers_are_found_beside_the_assignments_own_files(tmp_path: Path) -> None:
    (tmp_path / "assignment.toml").write_text("")
    with pytest.raises(NoSuchSubmission, match="none"):
        locate(tmp_path)
    (tmp_path / "submission.ipynb").write_text("")
    assert locate(tmp_path).name == "submission.ipynb"
    (tmp_path / "answers.toml").write_text("")
    assert locate(tmp_path).name == "answers.toml"


@pytest.mark.parametrize("answer", ["a", "A", " (a) ", "a.", "nine of them"])
def test_a_choice_is_meant_by_its_letter_or_its_text(answer: str) -> None:
    assert letter(GRID, answer) == "a"


@pytest.mark.parametrize("answer", ["c", "ab", "nine", ""])
def test_what_is_no_choice_is_none(answer: str) -> None:
    assert letter(GRID, answer) is None


def test_a_digest_tells_one_answer_from_another() -> None:
    assert digest("one") == digest("one") != digest("two")


def test_an_answer_to_what_was_not_asked_is_noted_with_the_nearest_question() -> None:
    assert unknown(["assignment", "grip", "zzz"], [GRID, WHY]) == [
        "There is no question grip; did you mean grid?", "There is no question zzz.",
    ]
