"""An exception that student code raised, as plain data: cause, message, the submission's line, and detail.

Causes are the values of gradekit.findings.Cause as text: this process may import nothing of gradekit but `program`.
"""

from __future__ import annotations

import ast
import re
import traceback
from dataclasses import asdict, dataclass
from typing import Any

from triton import CompilationError

from gradekit.compat.triton import CompileTimeAssertionFailure, definition_line, jit_functions
from gradekit.tracer import hints, operands
from gradekit.tracer.output import printable

COMPILATION = "compilation-error"
MESSAGE = 2000
DETAIL = 8000
"""The most characters that are kept of what is said, and of what Triton or Python itself said."""


class ReadsValues(RuntimeError):
    """Host code asked for the value of a tensor on the GPU."""

    def __init__(self, what: str) -> None:
        self.short = f"{what} needs the values of a tensor"
        super().__init__(
            f"{what} needs the values of a tensor. While a submission is graded, its host code sees shapes, strides "
            "and dtypes, but no values: compute with them inside a kernel."
        )


class DeferredOperation(RuntimeError):
    """A tensor is used that torch has only marked as negated or conjugated (torch._neg_view, conj()): whoever reads its
    memory, as a kernel does, gets numbers without that."""

    def __init__(self, how: str) -> None:
        super().__init__(
            f"Computes with torch: a tensor is marked as {how} (as torch._neg_view and conj() do), which torch does "
            "where "
            "it is read. Compute that inside a kernel."
        )


class BeyondBudget(RuntimeError):
    """Compiling takes more than grading allows."""


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
        """The refusal as JSON data, within limits whatever the submission raised."""
        return asdict(self) | {"message": printable(self.message[:MESSAGE]), "detail": printable(self.detail[:DETAIL])}


class PassesFailed(RuntimeError):
    """The kernel passed Triton's front end and failed in MLIR; `said` is what MLIR wrote about it."""

    def __init__(self, kernel: str, said: str) -> None:
        super().__init__(f"Triton cannot compile `{kernel}`")
        self.kernel = kernel
        self.said = said


def refusal(error: BaseException, path: str, where: str = "") -> Refusal:
    """Explains `error`, raised by the submission whose text stands in the file `path`.

    `where` says what was going on ("while the file was loaded"); `line` is the innermost in the submission.
    """
    if isinstance(error, Refusal):
        return error
    if isinstance(error, (CompilationError, PassesFailed)):
        return _not_compiled(error, path)
    line = line_of(error, path)
    if isinstance(error, TimeUp):
        return Refusal("timeout", f"Time is up{where and ' ' + where}: does a loop never end?", line)
    if isinstance(error, BeyondBudget):
        return Refusal("budget-exceeded", str(error), line)
    if isinstance(error, DeferredOperation):
        return Refusal("forbidden-op", str(error), line)
    if isinstance(error, ReadsValues):
        return Refusal("reads-values", str(error), line)
    if _out_of_memory(error):
        return Refusal("out-of-memory", f"The host ran out of memory {where}: {_first_line(error)}", line)
    message = f"{type(error).__name__}: {_text(error)}" if str(error) else type(error).__name__
    return Refusal("exception", _with_hint(message), line, detail=own_traceback(error, path))


def _not_compiled(error: CompilationError | PassesFailed, path: str) -> Refusal:
    launched = line_of(error, path)
    if isinstance(error, PassesFailed):
        found = re.search(rf"{re.escape(path)}\W+(\d+):\d+", error.said)
        first = next((line for line in error.said.splitlines() if "error:" in line), "")
        message = f"{error}: {first.partition('error:')[2].strip() or 'a pass failed'}"
        return Refusal(COMPILATION, _with_hint(message), int(found[1]) if found else launched, error.said)
    chain = _chain(error)
    places = [place for place in (_place(link, path) for link in chain) if place is not None]
    kernel, line = places[-1] if places else ("the kernel", launched)
    said = next((link.error_message for link in reversed(chain) if link.error_message), _failed_assertion(error))
    message = f"Triton cannot compile `{kernel}`: {_unwrapped(said)}"
    if more := _explained(chain[-1], said, line):
        message = f"{message.rstrip('. ')}. {more}"
    return Refusal(COMPILATION, _with_hint(message), line, "\n\n".join(str(link) for link in chain))


def _chain(error: BaseException | None) -> list[CompilationError]:
    """The error and, where it arose in a function that the kernel calls, the error in there, and so on inwards."""
    links = []
    while isinstance(error, CompilationError):
        links.append(error)
        error = error.__cause__
    return links


def _place(error: CompilationError, path: str) -> tuple[str, int] | None:
    """The name of the jit function in the submission, and the line, where the error arose."""
    for function in jit_functions():
        if function.fn.__code__.co_filename == path and function.src == error.src:
            line = definition_line(function) + getattr(error.node, "lineno", 1) - 1
            return function.fn.__name__, line
    return None


_OF_THE_HOST = ("Did you forget to add @triton.jit", "'NoneType' object has no attribute 'to_tensor'")
"""What Triton says of a call of a function that is none of its own; the second, before 3.9, where that function calls
a method of the block."""


def _explained(error: CompilationError, said: str, line: int | None) -> str:
    """What the refused expression, on the submission's `line`, adds to what Triton `said`; "" where it adds nothing."""
    if line and re.search(hints.SHAPES, said):
        return operands.origins(error.src, error.node, line - getattr(error.node, "lineno", 1) + 1, said)
    if line and (changed := re.search(r"Loop-carried variable (\w+) has initial type", said)):
        return operands.beginning(error.src, changed[1], error.node, line - getattr(error.node, "lineno", 1) + 1)
    if any(sign in said for sign in _OF_THE_HOST):
        return operands.of_the_host(error.src, error.node)
    return ""


def _failed_assertion(error: CompilationError) -> str:
    if isinstance(error, CompileTimeAssertionFailure):
        return "a static_assert failed"
    return f"it refuses `{ast.unparse(error.node)[:200]}`" if isinstance(error.node, ast.expr) else "no reason is given"


def _unwrapped(said: str) -> str:
    """NameError: x for NameError('x'), because shows the repr of errors that are not its own."""
    match = re.fullmatch(r"""(\w+)\((["'])(.*)\2\)""", said, re.DOTALL)
    return f"{match[1]}: {match[3]}" if match and match[3] else said


def _text(error: BaseException) -> str:
    """What the error says, at most MESSAGE characters of it (a KeyError would quote it)."""
    return str(error.args[0] if isinstance(error, KeyError) and error.args else error)[:MESSAGE]


def _with_hint(message: str) -> str:
    hint = hints.hint(message)
    return f"{message}\n{hint}" if hint else message


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
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    lines = [f"line {frame.lineno}, in {frame.name}: {frame.line}" for frame in frames]
    return "\n".join([*lines, f"{type(error).__name__}: {_text(error)}"])


def _out_of_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or "can't allocate memory" in str(error) or "not enough memory" in str(error)


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
