"""Makes a starter from a solution: a region that is marked as the solution's gives way to what the student finds there.

CONTRIBUTING.md shows the marks, `# solution:`, `# student:` (that half may be left out) and `# end`.
"""

import ast
import re
from collections.abc import Iterator

SOLUTION, END = "# solution:", "# end"
_MARK = r"[ \t]*# (?:solution:|student:|end)[ \t]*\n"
_LINES = rf"(?:(?!{_MARK}).*\n)*"
_REGION = re.compile(
    rf"(?m)^([ \t]*){SOLUTION}[ \t]*\n{_LINES}(?:[ \t]*# student:[ \t]*\n({_LINES}))?[ \t]*{END}[ \t]*\n"
)
"""A region: its indentation, and the student's lines where it has some."""


class RegionError(ValueError):
    """The marks do not pair up, or what is left is not Python: one sentence, with the solution's line."""


def starter(solution: str, title: str) -> str:
    """The starter that a solution's text holds, with a docstring for the student. Raises RegionError where there is no
    region, marks or lines of one are wrong, or what is left is not Python."""
    text = "\n".join(solution.splitlines()) + "\n"
    outside = _REGION.sub(lambda region: "\n" * region[0].count("\n"), text)
    if mark := re.search(f"(?m)^{_MARK}", outside):
        number = outside[: mark.start()].count("\n") + 1
        raise RegionError(f"line {number}: {mark[0].strip()!r} opens no region that `{END}` closes")
    left = _REGION.sub(lambda region: "".join(_student_lines(region, text)), text)
    if left == text:
        raise RegionError(f"it marks no region with `{SOLUTION}` and `{END}`: a starter would give the solution away")
    return _with_docstring(_spaced(left.rstrip() + "\n"), _docstring(title))


def _student_lines(region: re.Match[str], text: str) -> Iterator[str]:
    for number, line in enumerate((region[2] or "").splitlines(), text[: max(region.start(2), 0)].count("\n") + 1):
        match = re.fullmatch(rf"{region[1]}#(?: (.*))?", line)
        if match is None:
            raise RegionError(f"line {number}: a student's line must be a comment below its `# student:`")
        yield (region[1] + match[1]).rstrip() + "\n" if match[1] else "\n"


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
