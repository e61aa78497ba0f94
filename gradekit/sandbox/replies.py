"""What a submission's process sends, checked: it may have been taken over, so nothing in it is believed."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gradekit import processes, wellformed
from gradekit.findings import Cause
from gradekit.program import Argument, Kernel, Program, ProgramError, View, decode
from gradekit.tracer.hints import hint

MOST_TEXT, MOST_NAMES = 1 << 16, 10_000
"""The longest text that is taken from a submission's process, and how many functions and notes it may have."""


QUOTE = "│ "  # stands before each line that comes from the submission


@dataclass(frozen=True)
class Loaded:
    """`functions`: how many parameters each requires and takes (-1: any); `notes`: what was left out, and why."""

    functions: dict[str, tuple[int, int]]
    notes: tuple[str, ...]


def loaded(answer: Mapping[str, Any]) -> Loaded:
    """What an answer to "load" says. Raises TraceError where it makes no sense."""
    functions, notes = answer.get("functions"), answer.get("notes")
    if not isinstance(functions, dict) or not isinstance(notes, list) or len(functions) + len(notes) > MOST_NAMES:
        raise malformed()
    shown = tuple(QUOTE + " ".join(text(note).split()) for note in notes)
    return Loaded({text(name): _counts(counts) for name, counts in functions.items()}, shown)


def program(answer: Mapping[str, Any], args: Sequence[Argument], kernels: Mapping[str, Kernel]) -> Program:
    """The program in an answer to "trace", which may name `kernels` sent before. Raises TraceError if it is no such."""
    try:
        found = decode(answer["program"])
        known = {key: kernels[key] for key in answer["known"]}
        found = replace(found, kernels=found.kernels | known)
        wellformed.check(found, [arg for arg in args if isinstance(arg, View)], known)
    except wellformed.KernelsTooLarge as error:
        raise TraceError(Cause.BUDGET_EXCEEDED, text(str(error))) from None
    except (ProgramError, KeyError, TypeError, RecursionError) as error:
        raise malformed(text(str(error))) from None
    return found


def part(answer: Mapping[str, Any], name: str, kind: type) -> Any:
    """The value `answer[name]`, such as the Origins in an answer to "follow". Raises TraceError for nonsense."""
    try:
        return decode(answer[name], kind)
    except (ProgramError, KeyError, TypeError, RecursionError) as error:
        raise malformed(text(str(error))) from None


def lowered(answer: Mapping[str, Any]) -> dict[bytes, list[Any]]:
    """What other processes of the submission are told; they alone read it. Raises TraceError where it is no table."""
    found = answer.get("lowered")
    if not isinstance(found, dict) or not all(isinstance(value, list) for value in found.values()):
        raise malformed()
    return {text(key).encode(): value for key, value in found.items()}


def count(answer: Mapping[str, Any], name: str) -> int:
    """A count of an answer, by its name. Raises TraceError where it makes no sense."""
    found = answer.get(name)
    if type(found) is not int or not 0 <= found < 1 << 40:
        raise malformed()
    return found


def types(answer: Mapping[str, Any]) -> list[str]:
    """The types of a kernel's arguments, from an answer to "signature". Raises TraceError where it makes no sense."""
    found = answer.get("types")
    if not isinstance(found, list):
        raise malformed()
    return [text(kind) for kind in found]


def error(data: Any) -> TraceError:
    """The error that an answer tells of."""
    try:
        line = data["line"]
        if line is not None and (type(line) is not int or not 0 <= line < 1 << 31):
            return malformed()
        message, own = _quoted(text(data["message"]))
        return TraceError(Cause(data["cause"]), message, line, text(data["detail"]), own)
    except (KeyError, TypeError, ValueError):
        return malformed()


def _quoted(message: str) -> tuple[str, str]:
    """`message` with a mark before each line after its first, for the submission wrote them, and might imitate a
    report; and its last line, which has no mark, where that is a hint of ours."""
    first, *rest = message.split("\n")
    own = [rest.pop()] if rest and rest[-1] == hint("\n".join([first, *rest[:-1]])) else []
    return "\n".join([first, *(QUOTE + line for line in rest), *own]), "".join(own)


def text(data: Any) -> str:
    """Text from the wire, without what no encoding can carry, cut to MOST_TEXT. Raises TraceError for no text."""
    if not isinstance(data, str):
        raise malformed()
    return data[:MOST_TEXT].encode("utf-8", "replace").decode()


def _counts(data: Any) -> tuple[int, int]:
    is_pair = isinstance(data, list) and len(data) == 2
    if not is_pair or not all(type(count) is int and -1 <= count < 1 << 16 for count in data):
        raise malformed()
    return data[0], data[1]


_REASONS: dict[int, str] = {
    signal.SIGKILL: ": most likely it took too much memory",
    signal.SIGXFSZ: ": it wrote more into files than it may",
    signal.SIGXCPU: ": it computed for longer than it may",
}


def ending(status: int) -> str:
    """How a process with that wait status ended, and why that usually happens."""
    code = os.waitstatus_to_exitcode(status)
    return processes.ending(code) + _REASONS.get(-code, "")


# --- errors -----------------------------------------------------------------------------------------------------------


class TraceError(Exception):
    """The submission was not loaded or traced: why, at which of its lines, and what Triton or Python itself said.
    `hint` is what to do about it, in gradekit's words; the last line of `message` where it is not empty."""

    def __init__(self, cause: Cause, message: str, line: int | None = None, detail: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.cause, self.message, self.line, self.detail, self.hint = cause, message, line, detail, hint

    @property
    def said(self) -> str:
        """The message without the hint."""
        return self.message.removesuffix(f"\n{self.hint}") if self.hint else self.message


class Unavailable(Exception):
    """The tracer's own process cannot be started on this machine: a fault of the grader, whatever the submission."""


def malformed(why: str = "") -> TraceError:
    """The error for an answer that no honest process would have sent."""
    reason = f" ({why})" if why else ""
    return TraceError(Cause.CRASH, f"The submission's process sent an answer that makes no sense.{reason}")
