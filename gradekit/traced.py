"""What submissions' processes have answered, by the text that they run: a class hands in many copies of one text.

What a process answers depends on its text and on what it is asked, so another process need not be asked again where both
are the same, whatever the text may do: what it makes of itself, it makes of its copies. Copies differ in the comments
between their functions (names, dates), which a submission's process is therefore never given.

Works in the grader's process; what it keeps lives as long as that.
"""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass, field
from typing import Any

from gradekit.program import Program
from gradekit.shelf import Shelf

MOST_BYTES = 128 << 20
"""Of all that is kept; a text with some hundreds of answers has 2 to 4 MiB."""

_BYTES_OF_ANSWER = 8 << 10


def without_comments(text: str) -> str:
    """The text without what its lines at the left margin say in comments; every line of code stays where it is.

    Comments inside of functions stay: they are shown where Triton shows the lines of a kernel.
    """
    code = _code(text)
    if code is None:
        return text
    lines = ["" if _is_comment(line) and at not in code else line for at, line in enumerate(text.split("\n"), 1)]
    return "\n".join(lines).rstrip() + "\n"


def _code(text: str) -> set[int] | None:
    """The numbers of the lines in which statements stand; None where that cannot be told."""
    if "\r" in text.replace("\r\n", ""):  # ends a line for Python
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return {number for statement in ast.parse(text).body for number in _lines(statement)}
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _lines(statement: ast.stmt) -> range:
    first = min([statement.lineno, *(decorator.lineno for decorator in getattr(statement, "decorator_list", ()))])
    return range(first, (statement.end_lineno or first) + 1)


def _is_comment(line: str) -> bool:
    return line.startswith("#") and "coding" not in line  # which says how a file is to be read


@dataclass
class Traces:
    """What was answered about one text: `loaded`, what came of running it; and programs, or errors, of calls."""

    loaded: Any = None
    _calls: dict[str, list[Any]] = field(default_factory=dict)

    def answer(self, call: str, times: int) -> Any:
        """What came of `call` when it was made after so many `times`; None where nobody knows."""
        known = self._calls.get(call, ())
        return known[times] if times < len(known) else None

    def keep(self, call: str, times: int, answer: Any) -> None:
        """Remembers it, if it is the next that is not known."""
        known = self._calls.setdefault(call, [])
        if times == len(known):
            known.append(answer)

    def weight(self) -> int:
        """Bytes, about."""
        answers = [answer for known in self._calls.values() for answer in known]
        texts = {id(k.ttir): len(k.ttir) for a in answers if isinstance(a, Program) for k in a.kernels.values()}
        return _BYTES_OF_ANSWER * len(answers) + sum(texts.values())


_SHELF: Shelf[Any, Traces] = Shelf(MOST_BYTES, Traces.weight)


def recall(question: Any) -> Traces:
    """What is known of a text (and of whatever else decides its answers); to be kept again when more is."""
    return _SHELF.get(question) or Traces()


def keep(question: Any, traces: Traces) -> None:
    """Remembers it for the next that asks."""
    _SHELF.keep(question, traces)
