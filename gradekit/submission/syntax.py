"""Parses Python source that nobody has vetted, and says in plain words what is wrong with it. Never runs it."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator

from gradekit.findings import SourceLine


class SourceError(Exception):
    """Text that Python cannot read: `message` is one sentence for the student, `source` the line it speaks of."""

    def __init__(self, message: str, source: SourceLine | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.source = source


def parse(text: str) -> ast.Module:
    """The syntax tree of `text`, which compiles as a module.

    Raises:
        SourceError: it does not.
    """
    if "\0" in text:
        number = text.count("\n", 0, text.index("\0")) + 1
        nul = SourceLine(number, text.split("\n")[number - 1])
        raise SourceError("the file contains NUL bytes: is it a compiled or binary file?", nul)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
            compile(text, "submission", "exec", dont_inherit=True)
    except SyntaxError as error:
        raise SourceError(_explain(error, text), _place(error, text)) from None
    except (RecursionError, MemoryError):
        raise SourceError("the code is nested too deeply for Python to read") from None
    except (ValueError, OverflowError) as error:
        raise SourceError(f"Python cannot read this: {error}") from None
    return tree


def blocks(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The bodies of an if, try or with: what they define at the top level is at the top level too."""
    if isinstance(node, (ast.If, ast.Try, ast.With)):
        yield from (getattr(node, name, []) for name in ("body", "orelse", "finalbody"))
        yield from (handler.body for handler in getattr(node, "handlers", []))


def first_line(error: Exception) -> str:
    """What an error says in its first line, shortened; its type where it says nothing."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:100]


_HINTS = (
    (r"Missing parentheses in call to 'print'", "write print with parentheses, as in print(...)"),
    (r"expected ':'", "a line that opens a block (def, if, for, while, class) ends in a colon"),
    (r"'(.)' was never closed", "find the place where this bracket should close"),
    (r"unmatched '(.)'", "one closing bracket too many, or an opening one missing before it"),
    (r"unterminated triple-quoted string", "a string opened with three quotes here is never closed"),
    (r"unterminated (f-)?string", "a string opened on this line is never closed"),
    (r"inconsistent use of tabs and spaces", "indent with spaces only; your editor can convert the tabs"),
    (r"unindent does not match", "this line is indented by a number of spaces that no block above it has"),
    (r"unexpected indent", "this line is indented, but no block was opened above it"),
    (r"expected an indented block", "the block above has no body: indent this line, or write pass"),
    (r"Maybe you meant '=='", "to compare, write two equals signs"),
    (r"invalid character '[‘’“”]", "a curly quote, often from copying out of a document: type a plain quote instead"),
    (r"invalid (character|non-printable character)", "often from copying out of a web page or PDF: retype this line"),
    (r"outside function", "this statement has lost its def: check the indentation above"),
    (r"outside loop", "this statement has lost its loop: check the indentation above"),
    (r"Perhaps you forgot a comma", "a comma or an operator is missing between two values"),
    (r"__future__", "move this import to the top of the file"),
)
"""What Python says (a pattern), and what to do about it."""

_LINE_HINTS = (
    (r"\s*```", "a Markdown fence: hand in the code alone, without the ``` lines"),
    (r"\s*(<<<<<<<|=======|>>>>>>>)", "a merge conflict was left in the file: choose one side and delete the markers"),
    (r"\s*(>>>|In \[)", "a prompt was copied along with the code: delete it at the start of each line"),
    (r"\s*[%!]", "notebook magics work only in a notebook: delete the line, or hand in the .ipynb"),
    (r"\s*(def|class|if|for|while|else|elif|with|try)\b[^:#]*$", "a line that opens a block ends in a colon"),
    (r".*\bprint [\"'\w]", "write print with parentheses, as in print(...)"),
)
"""What the offending line looks like (a pattern), and what to do about it: for a bare 'invalid syntax'."""


def _explain(error: SyntaxError, text: str) -> str:
    said = error.msg or "invalid syntax"
    hint = _hint(said, (_place(error, text) or SourceLine(0, "")).text)
    return f"`{said}`. {hint[:1].upper()}{hint[1:]}." if hint else f"`{said}`."


def _hint(said: str, line: str) -> str:
    by_line = [hint for pattern, hint in _LINE_HINTS if said == "invalid syntax" and re.match(pattern, line)]
    by_message = [hint for pattern, hint in _HINTS if re.search(pattern, said)]
    return next(iter(by_line + by_message), "")


def _place(error: SyntaxError, text: str) -> SourceLine | None:
    lines = text.split("\n")
    if error.lineno is None or not 1 <= error.lineno <= len(lines):
        return None
    return SourceLine(error.lineno, lines[error.lineno - 1])
