"""A starter is what a solution's marked regions leave."""

from __future__ import annotations

import pytest

from gradekit.course.regions import RegionError, starter

SOLUTION = '''"""Adds."""

import torch

# solution:
BLOCK = 1024


def helper():
    return BLOCK
# end


def add(x, y):
    """Return x + y."""
    # solution:
    return x + y
    # student:
    # # TODO: add.
    #
    # raise NotImplementedError
    # end
'''

STARTER = '''"""Vector add: fill in the TODOs, then run `gradekit check` in this folder. README.md explains the task."""

import torch


def add(x, y):
    """Return x + y."""
    # TODO: add.

    raise NotImplementedError
'''


def test_regions_give_way_to_what_the_student_finds_there() -> None:
    assert starter(SOLUTION, "Vector add") == STARTER


def test_a_function_that_takes_the_place_of_a_constant_stands_apart_from_the_imports() -> None:
    text = '"""D."""\n\nimport torch\n\n# solution:\nN = 1\n# student:\n# def f():\n#     pass\n# end\n'
    assert starter(text, "T").endswith("import torch\n\n\ndef f():\n    pass\n")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('"""D."""\nx = 1\n', "marks no region"),
        ('"""D."""\n# solution:\nx = 1\n', "line 2: '# solution:' opens no region"),
        ('"""D."""\n# end\n', "line 2: '# end' opens no region"),
        ('"""D."""\n# solution:\n# solution:\n# end\n# end\n', "line 2"),
        ('"""D."""\n# solution:\n# student:\nx = 1\n# end\n', "line 4: a student's line must be a comment"),
        ('"""D."""\n# solution:\nx = 1\n# student:\n# x = (\n# end\n', "not Python"),
        ("# solution:\nx = 1\n# end\ny = 2\n", "does not begin with a docstring"),
    ],
)
def test_marks_that_are_wrong_are_told_with_their_line(text: str, complaint: str) -> None:
    with pytest.raises(RegionError, match=complaint):
        starter(text, "T")
