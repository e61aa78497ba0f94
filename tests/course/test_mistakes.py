"""A mistake is an edit of a right submission that fits in exactly one way, or a file of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from gradekit.assignment import Assignment, get, load
from gradekit.causes import Cause
from gradekit.cli import main
from gradekit.course.mistakes import MistakeError, mistake, names

TEXT = '''\
"""Two kernels."""


def forward(x):
    mask = x < 4
    return x + 1


def backward(x):
    mask = x < 4
    return x - 1
'''

EDIT = """
[adds_two]
title = "Adds two."
expect = "test_a wrong-values"
edit = '''
-    return x + 1
+    return x + 2
'''
"""


@pytest.fixture
def assignment(tmp_path: Path) -> Assignment:
    folder, solutions = tmp_path / "assignments" / "a", tmp_path / "solutions" / "a"
    folder.mkdir(parents=True)
    solutions.mkdir(parents=True)
    (folder / "assignment.toml").write_text('title = "T"\nentry = "forward"\nsummary = "S"\n')
    (solutions / "solution.py").write_text(TEXT)
    other = '[shape]\ntitle = "Another shape."\nexpect = "test_b wrong-shape"\nbase = "wrong_shape.py"\n'
    (solutions / "mistakes.toml").write_text(EDIT + other)
    (solutions / "wrong_shape.py").write_text('"""Of another."""\nx = 1\n')
    return load(folder)


def test_the_title_is_the_docstring_of_the_whole_file(assignment: Assignment) -> None:
    found = mistake(assignment, "adds_two")
    assert (found.title, found.check, found.cause) == ("Adds two.", "test_a", Cause.WRONG_VALUES)
    assert found.text == TEXT.replace("Two kernels.", "Adds two.").replace("x + 1", "x + 2")


def test_a_file_of_its_own_is_a_mistake_too(assignment: Assignment) -> None:
    assert names(assignment) == ["adds_two", "shape"]
    found = mistake(assignment, "shape")
    assert (found.title, found.check, found.cause) == ("Another shape.", "test_b", Cause.WRONG_SHAPE)
    assert found.text == '"""Another shape."""\nx = 1\n'


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        (EDIT.replace("test_a wrong-values", "test_a bad-luck"), "adds_two: there is no cause bad-luck"),
        (EDIT.replace("test_a ", ""), "as in `test_empty exception`, and not 'wrong-values'"),
        (EDIT.replace("title", "says"), "it must have the string title, and may have expect, base and edit; it has base, "),
        ('base = "right_b.py"\n' + EDIT, "there is no file right_b.py to edit"),
        ('bas = "right_b.py"\n' + EDIT, "bas is 'right_b.py', but must be a table, [bas]"),
        (EDIT.replace("x + 1", "x + 9"), "adds_two: these lines stand 0 times in solution.py, not once:\n    return x + 9"),
    ],
)  # fmt: skip
def test_a_mistake_that_is_described_wrongly_is_told_with_its_name(
    assignment: Assignment, toml: str, said: str
) -> None:
    assert assignment.solutions is not None
    (assignment.solutions / "mistakes.toml").write_text(toml)
    with pytest.raises(MistakeError) as caught:
        mistake(assignment, "adds_two")
    assert said in str(caught.value) and "mistakes.toml" in str(caught.value)


def test_verify_shows_a_mistake_as_a_whole_submission() -> None:
    shown = CliRunner().invoke(main, ["verify", "softmax", "--show", "pads_with_zero"])
    assert shown.exit_code == 0 and shown.stdout == mistake(get("softmax"), "pads_with_zero").text
    assert shown.stdout.startswith('"""Masked elements are loaded as 0') and "other=0.0" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["softmax", "--show", "nothing"], "softmax has no mistake nothing; it has empty_like_strides, "),
        (["--show", "no_mask"], "--show needs the assignment: gradekit verify ID --show NAME"),
    ],
)
def test_a_mistake_that_there_is_not_is_wrong_usage(arguments: list[str], said: str) -> None:
    shown = CliRunner().invoke(main, ["verify", *arguments])
    assert shown.exit_code == 2 and said in shown.output
