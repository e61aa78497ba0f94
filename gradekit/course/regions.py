"""Makes a starter from a solution: a region that is marked as the solution's gives way to what the student finds there.

    # solution:
    sums = tl.sum(tile, axis=1)              stands in the solution only
    # student:
    # # TODO: sum up each row of the tile.   stands in the starter, without the first `# `
    # end

The half after `# student:` may be left out. The marks stand alone on their lines, at one indentation, and may enclose
statements at any depth, or whole functions. What lies outside of regions stands in both files.

Text to text: nothing is read, imported or run here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

SOLUTION, STUDENT, END = "# solution:", "# student:", "# end"


class RegionError(ValueError):
    """The marks do not pair up, or what is left is not Python: one sentence, with the solution's line."""


@dataclass(frozen=True)
class SolutionRegion:
    """Lines `first` to `last` of the solution, marks included, counted from 0; `student` stands there instead."""

    first: int
    last: int
    student: tuple[str, ...]


def regions(solution: str) -> list[SolutionRegion]:
    """The marked regions of a solution's text, in order.

    Raises:
        RegionError: a mark without its partner, one inside another, or a student's line that is no comment.
    """
    lines = solution.splitlines()
    marks = [(number, line.strip()) for number, line in enumerate(lines) if line.strip() in (SOLUTION, STUDENT, END)]
    return list(_paired(marks, lines))


def _paired(marks: Sequence[tuple[int, str]], lines: Sequence[str]) -> Iterator[SolutionRegion]:
    rest = list(marks)
    while rest:
        kinds = [kind for _, kind in rest[:3]]
        if kinds[:2] == [SOLUTION, END]:
            first, last = rest.pop(0)[0], rest.pop(0)[0]
            yield SolutionRegion(first, last, ())
        elif kinds == [SOLUTION, STUDENT, END]:
            first, middle, last = (rest.pop(0)[0] for _ in range(3))
            yield SolutionRegion(first, last, tuple(_student_lines(lines, first, middle, last)))
        else:
            raise RegionError(f"line {rest[0][0] + 1}: {kinds[0]!r} opens no region that `{END}` closes")


def _student_lines(lines: Sequence[str], first: int, middle: int, last: int) -> Iterator[str]:
    indentation = lines[first][: lines[first].index("#")]
    for number in range(middle + 1, last):
        match = re.fullmatch(rf"{indentation}#(?: (.*))?", lines[number])
        if match is None:
            raise RegionError(f"line {number + 1}: a student's line must be a comment below its `{STUDENT}`")
        yield (indentation + match[1]).rstrip() if match[1] else ""


def starter(solution: str, title: str) -> str:
    """The starter that a solution's text holds; its docstring tells the student what to do with the file.

    Raises:
        RegionError: there is no region, the marks do not pair up, or what is left is not Python.
    """
    found = regions(solution)
    if not found:
        raise RegionError(f"it marks no region with `{SOLUTION}` and `{END}`: a starter would give the solution away")
    lines: list[str] = list(solution.splitlines())
    for region in reversed(found):
        lines[region.first : region.last + 1] = region.student
    return _with_docstring(_spaced("\n".join(lines).rstrip() + "\n"), _docstring(title))


def _spaced(text: str) -> str:
    """Two blank lines before a function, and nowhere more: regions leave gaps, and close others."""
    text = re.sub(r"\n{4,}", "\n\n\n", text)
    return re.sub(r"(?<!\n)\n\n(?=@|def |class )", "\n\n\n", text)


def _docstring(title: str) -> str:
    return f'"""{title}: fill in the TODOs, then run `gradekit check` in this folder. README.md explains the task."""'


def _with_docstring(text: str, docstring: str) -> str:
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise RegionError(f"the starter is not Python: {error.msg}, at {(error.text or '').strip()!r}") from None
    if ast.get_docstring(tree) is None:
        raise RegionError("it does not begin with a docstring")
    return "\n".join([docstring, *text.splitlines()[tree.body[0].end_lineno :]]) + "\n"
