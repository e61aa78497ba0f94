"""Parses Python source that nobody has vetted, and says in plain words what is wrong with it. Never runs it."""

import ast
import re
import tomllib
import warnings
from collections.abc import Iterator
from pathlib import Path

from gradekit.findings import SourceLine


class SourceError(Exception):
    """Text that Python cannot read: `message` is one sentence for the student, `source` the line it speaks of."""

    def __init__(self, message: str, source: SourceLine | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.source = source


def parse(text: str) -> ast.Module:
    """The syntax tree of `text`, which compiles as a module. Raises SourceError where it does not."""
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


_HINTS = tomllib.loads(Path(__file__).with_name("syntax.toml").read_text(encoding="utf-8"))


def _explain(error: SyntaxError, text: str) -> str:
    said = error.msg or "invalid syntax"
    hint = _hint(said, (_place(error, text) or SourceLine(0, "")).text)
    return f"`{said}`. {hint[:1].upper()}{hint[1:]}." if hint else f"`{said}`."


def _hint(said: str, line: str) -> str:
    looked_at = {"message": said, "line": line if said == "invalid syntax" else ""}
    hints = (row["says"] for pattern, row in _HINTS.items() if re.search(pattern, looked_at[row.get("of", "message")]))
    return next(hints, "")


def _place(error: SyntaxError, text: str) -> SourceLine | None:
    lines = text.split("\n")
    if error.lineno is None or not 1 <= error.lineno <= len(lines):
        return None
    return SourceLine(error.lineno, lines[error.lineno - 1])
