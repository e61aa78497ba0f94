"""A mistake is an edit of a right submission that fits in exactly one way, or a file of its own."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from gradekit.assignment import Assignment, get
from gradekit.causes import Cause
from gradekit.cli import main
from gradekit.course.edits import EditError, edit_between, edited
from gradekit.course.mistakes import MistakeError, all_of, mistake
from tests.small import laid_out

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
    other = '[shape]\ntitle = "Another shape."\nexpect = "test_b wrong-shape"\nbase = "wrong_shape.py"\n'
    staff = {"solution.py": TEXT, "mistakes.toml": EDIT + other, "wrong_shape.py": '"""Of another."""\nx = 1\n'}
    return laid_out(tmp_path, "a", "forward", {f"solutions/{name}": text for name, text in staff.items()})


def test_the_title_is_the_docstring_of_the_whole_file(assignment: Assignment) -> None:
    found = mistake(assignment, "adds_two")
    assert (found.title, found.check, found.cause) == ("Adds two.", "test_a", Cause.WRONG_VALUES)
    assert found.text == TEXT.replace("Two kernels.", "Adds two.").replace("x + 1", "x + 2")


def test_a_file_of_its_own_is_a_mistake_too(assignment: Assignment) -> None:
    assert [one.name for one in all_of(assignment)] == ["adds_two", "shape"]
    found = mistake(assignment, "shape")
    assert (found.title, found.check, found.cause) == ("Another shape.", "test_b", Cause.WRONG_SHAPE)
    assert found.text == '"""Another shape."""\nx = 1\n'


@pytest.mark.parametrize(("toml", "said"), [
    (EDIT.replace("test_a wrong-values", "test_a bad-luck"), "adds_two: there is no cause bad-luck"),
    (EDIT.replace("test_a ", ""), "as in `test_empty exception`, and not 'wrong-values'"),
    (EDIT.replace("title", "says"), "it must have the string title, and may have expect, base and edit; it has base, "),
    ('base = "right_b.py"\n' + EDIT, "there is no file right_b.py to edit"),
    ('bas = "right_b.py"\n' + EDIT, "bas is 'right_b.py', but must be a table, [bas]"),
    (EDIT.replace("x + 1", "x + 9"), "adds_two: these lines stand 0 times in solution.py, not once:\n    return x + 9"),
])
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


@pytest.mark.parametrize(("arguments", "said"), [
    (["softmax", "--show", "nothing"], "softmax has no mistake nothing; it has empty_like_strides, "),
    (["--show", "no_mask"], "--show needs the assignment: gradekit verify ID --show NAME"),
])
def test_a_mistake_that_there_is_not_is_wrong_usage(arguments: list[str], said: str) -> None:
    shown = CliRunner().invoke(main, ["verify", *arguments])
    assert shown.exit_code == 2 and said in shown.output


# --- an edit of a source fits in exactly one way, or is refused with the lines that do not fit ------------------------


EDITED = {
    "lines with a minus give way to those with a plus": (
        "-    return x + 1\n+    y = x\n+    return y\n", TEXT.replace("    return x + 1\n", "    y = x\n    return y\n"),
    ),
    "lines that stay say where others come": (" def forward(x):\n+    x = 2", TEXT.replace("forward(x):\n", "forward(x):\n    x = 2\n")),
    "whatever the order": (
        "-    return x - 1\n\n-    return x + 1\n+    return x\n", TEXT.replace("    return x - 1\n", "").replace("x + 1", "x"),
    ),
    "in the function that is named": ("@@ backward\n-    mask = x < 4\n+    mask = x <= 4\n", "<=".join(TEXT.rsplit("<", 1))),
}  # fmt: skip


@pytest.mark.parametrize(("edit", "text"), EDITED.values(), ids=EDITED)
def test_each_place_of_an_edit_is_edited(edit: str, text: str) -> None:
    assert edited(TEXT, edit, "a.py") == text


@pytest.mark.parametrize(("edit", "said"), [
    ("-    mask = x < 4", "these lines stand 2 times in a.py, not once:\n    mask = x < 4"),
    ("-    mask = x <", "these lines stand 0 times in a.py, not once:\n    mask = x <"),
    ("@@ forward\n-    return x - 1", "these lines stand 0 times in forward of a.py, not once:\n    return x - 1"),
    ("@@ sideways\n-    return x - 1", "a.py has 0 functions called sideways, not one"),
    ("+    return x", "it adds lines beside nothing: put a line that stays before or after them"),
    ("     return x - 1", "its edit changes nothing"),
    ("", "its edit changes nothing"),
    ("-a\nb", "a line of an edit begins with -, + or a space, and this one does not: b"),
    ("-def forward(x):\n     mask = x < 4\n\n     mask = x < 4\n-    return x + 1", "two of its places share line 5 of a.py"),
])
def test_an_edit_that_does_not_fit_in_exactly_one_way_is_refused(edit: str, said: str) -> None:
    with pytest.raises(EditError) as caught:
        edited(TEXT, edit, "a.py")
    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("new", "edit"),
    [
        (TEXT.replace("x + 1", "x"), "-    return x + 1\n+    return x\n"),
        (TEXT.replace("    return x + 1\n", ""), "-    return x + 1\n"),
        (TEXT.replace("    return x - 1", "    x = 1\n    return x - 1"), "     mask = x < 4\n+    x = 1\n     return x - 1\n"),
        (TEXT.replace("Two", "No"), '-"""Two kernels."""\n+"""No kernels."""\n'),
    ],
)  # fmt: skip
def test_the_edit_between_two_texts_makes_one_of_the_other(new: str, edit: str) -> None:
    assert edit_between(TEXT, new) == edit
    assert edited(TEXT, edit, "a.py") == new


def test_lines_that_stay_tell_a_place_from_others() -> None:
    old = "def f(x):\n    y = x\n    x = 1\n    y = 2\n    x = 1\n"
    new = "def f(x):\n    y = x\n    x = 1\n    y = 2\n    x = 2\n"
    assert edit_between(old, new) == "     y = 2\n-    x = 1\n+    x = 2\n"


def test_a_function_that_shares_its_name_with_a_method_is_told_by_its_lines() -> None:
    old = "def f(x):\n    return x\n\n\nclass F:\n    def f(self, x):\n        return x + 1\n"
    for new in (old.replace("    return x\n", "    return 2 * x\n"), old.replace("x + 1", "x")):
        edit = edit_between(old, new)
        assert "@@" not in edit
        assert edited(old, edit, "a.py") == new
