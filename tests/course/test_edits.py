"""An edit of a source fits in exactly one way, or is refused with the lines that do not fit."""

from __future__ import annotations

import pytest

from gradekit.course.edits import EditError, edit_between, edited

TEXT = '''\
"""Two kernels."""


def forward(x):
    mask = x < 4
    return x + 1


def backward(x):
    mask = x < 4
    return x - 1
'''


def test_lines_with_a_minus_give_way_to_those_with_a_plus() -> None:
    assert edited(TEXT, "-    return x + 1\n+    y = x\n+    return y\n", "a.py") == TEXT.replace(
        "    return x + 1\n", "    y = x\n    return y\n"
    )


def test_lines_that_stay_say_where_others_come() -> None:
    assert "def forward(x):\n    x = 2\n" in edited(TEXT, " def forward(x):\n+    x = 2", "a.py")


def test_each_place_is_edited_whatever_the_order() -> None:
    text = edited(TEXT, "-    return x - 1\n\n-    return x + 1\n+    return x\n", "a.py")
    assert text.count("return") == 1 and text.endswith("    mask = x < 4\n")


def test_a_place_is_looked_for_in_the_function_that_is_named() -> None:
    text = edited(TEXT, "@@ backward\n-    mask = x < 4\n+    mask = x <= 4\n", "a.py")
    assert text == "<=".join(TEXT.rsplit("<", 1))


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ("-    mask = x < 4", "these lines stand 2 times in a.py, not once:\n    mask = x < 4"),
        ("-    mask = x <", "these lines stand 0 times in a.py, not once:\n    mask = x <"),
        ("@@ forward\n-    return x - 1", "these lines stand 0 times in forward of a.py, not once:\n    return x - 1"),
        ("@@ sideways\n-    return x - 1", "a.py has 0 functions called sideways, not one"),
        ("+    return x", "it adds lines beside nothing: put a line that stays before or after them"),
        ("     return x - 1", "its edit changes nothing"),
        ("", "its edit changes nothing"),
        ("-a\nb", "a line of an edit begins with -, + or a space, and this one does not: b"),
        ("-def forward(x):\n     mask = x < 4\n\n     mask = x < 4\n-    return x + 1", "two of its places share line 5 of a.py"),
    ],
)  # fmt: skip
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
