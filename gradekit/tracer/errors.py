"""An exception that student code raised, as plain data: cause, message, the submission's line, and detail.

Causes are the values of gradekit.findings.Cause as text: this process may import nothing of gradekit but `program`.
"""

from __future__ import annotations

import traceback
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Any

from gradekit.tracer import hints


class ReadsValues(RuntimeError):
    """Host code asked for the value of a tensor on the GPU."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} needs the values of a tensor. While a submission is graded, its host code sees shapes, strides "
            "and dtypes, but no values: compute with them inside a kernel."
        )


class TimeUp(BaseException):
    """The time limit passed. Not an Exception, so that `except Exception` in a submission does not swallow it."""


@dataclass(frozen=True)
class Refusal(Exception):
    """Why a submission was not loaded or traced: `cause` is a Cause's value, `line` the submission's, 1-based."""

    cause: str
    message: str
    line: int | None = None
    detail: str = ""

    def as_data(self) -> dict[str, Any]:
        """The refusal as JSON data."""
        return asdict(self)


def refusal(error: BaseException, path: str, where: str = "") -> Refusal:
    """Explains `error`, raised by the submission whose text stands in the file `path`.

    `where` says what was going on ("while the file was loaded"); `line` is the innermost in the submission.
    """
    if isinstance(error, Refusal):
        return error
    line = line_of(error, path)
    if isinstance(error, TimeUp):
        return Refusal("timeout", f"Time is up {where}: does a loop never end?".replace("  ", " "), line)
    if isinstance(error, ReadsValues):
        return Refusal("reads-values", str(error), line)
    if _out_of_memory(error):
        return Refusal("out-of-memory", f"The host ran out of memory {where}: {_first_line(error)}", line)
    message = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    hint = hints.hint(message)
    return Refusal("exception", message + (f"\n{hint}" if hint else ""), line, detail=own_traceback(error, path))


def line_of(error: BaseException, path: str) -> int | None:
    """The innermost line of the file `path` in the error's traceback, or in that of its causes."""
    lines = [line for frame, line in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == path]
    if lines:
        return lines[-1]
    if isinstance(error, SyntaxError) and error.filename == path:
        return error.lineno
    chained = error.__cause__ or error.__context__
    return line_of(chained, path) if chained is not None else None


def own_traceback(error: BaseException, path: str) -> str:
    """The traceback as the student would see it: their own lines alone, then the error."""
    frames = [frame for frame in traceback.extract_tb(_traceback(error)) if frame.filename == path]
    lines = [f"line {frame.lineno}, in {frame.name}: {frame.line}" for frame in frames]
    return "\n".join([*lines, *traceback.format_exception_only(error)]).rstrip()


def _traceback(error: BaseException) -> TracebackType | None:
    return error.__traceback__


def _out_of_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or "can't allocate memory" in str(error) or "not enough memory" in str(error)


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
