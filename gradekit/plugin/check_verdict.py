"""What an exception says of a check, by its type alone.

A Failure or a failed assertion counts against the submission; what the engine cannot evaluate is pending; any other
exception is a fault of the grader.
"""

from __future__ import annotations

import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gradekit.findings import Cause, Outcome, SourceLine
from gradekit.plugin import check_points

if TYPE_CHECKING:
    from gradekit.judge.evidence import Diagnosis
    from gradekit.subject.subject import Call


class Rejection(Exception):
    """Why no check can say anything: the submission could not be read, executed, or called by the entry's name."""

    def __init__(self, cause: Cause, message: str, source: SourceLine | None = None, detail: str = "") -> None:
        super().__init__(message)
        self.cause = cause
        self.message = message
        self.source = source
        self.detail = detail


@dataclass(frozen=True)
class CheckVerdict:
    """The part of a check that an exception decides."""

    outcome: Outcome
    message: str = ""
    cause: Cause | None = None
    line: int | None = None
    source: SourceLine | None = None
    details: dict[str, Any] = field(default_factory=dict)


def verdict_of(error: BaseException) -> CheckVerdict:
    """What `error`, raised by a check, says: by its type alone."""
    from gradekit.engine.executor import ForbiddenOp, OverBudget, Unsupported
    from gradekit.judge.failure import Failure, NeedsPerson
    from gradekit.sandbox import TraceError
    from gradekit.subject.device import NeedsCard

    detail = getattr(error, "detail", "")
    told = {"detail": detail} if detail else {}
    if isinstance(error, Rejection):
        return CheckVerdict(Outcome.FAILED, error.message, error.cause, source=error.source, details=told)
    if isinstance(error, Failure):
        return CheckVerdict(Outcome.FAILED, error.message, error.cause, error.line, details=error.facts)
    if isinstance(error, TraceError):
        told |= {"hint": error.hint} if error.hint else {}
        return CheckVerdict(Outcome.FAILED, error.said, error.cause, error.line, details=told)
    if isinstance(error, ForbiddenOp):
        message = f"This computes with torch ({error.op}) where the assignment asks for a Triton kernel."
        return CheckVerdict(Outcome.FAILED, message, Cause.FORBIDDEN_OP, error.line)
    if isinstance(error, OverBudget):
        return CheckVerdict(Outcome.FAILED, str(error), Cause.BUDGET_EXCEEDED, getattr(error, "line", None))
    if isinstance(error, Unsupported):
        message = f"This machine cannot check it: gradekit's engine does not know {error.op}."
        return CheckVerdict(Outcome.PENDING, message, line=error.line, details={"op": error.op})
    if isinstance(error, NeedsPerson):
        return CheckVerdict(Outcome.PENDING, error.message)
    if isinstance(error, NeedsCard):
        return CheckVerdict(Outcome.PENDING, f"Not measured: {error.reason.rstrip('.')}.")
    return _ordinary(error)


def _ordinary(error: BaseException) -> CheckVerdict:
    if isinstance(error, pytest.skip.Exception):
        return CheckVerdict(Outcome.PENDING, str(error))
    if isinstance(error, (AssertionError, pytest.fail.Exception)):
        said = str(error).strip().split("\nassert ", 1)[0]  # without the comparison that pytest appends
        return CheckVerdict(Outcome.FAILED, said or "The assertion failed.")
    message = f"The grader failed here, not the submission: {located(error)}"
    text = "".join(traceback.format_exception(error))
    return CheckVerdict(Outcome.FAULT, message, details={"traceback": text[-8000:]})


def located(error: BaseException) -> str:
    """What went wrong in an assignment's own Python, and where it was raised or passed through."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_assignments(Path(frame.filename))]
    return _told(error) + (f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else "")


def _told(error: BaseException) -> str:
    if isinstance(error, pytest.FixtureLookupError):
        return f"the test takes {error.argname!r}, which is neither a fixture nor drawn (a check takes submission)"
    return f"{type(error).__name__}: {error}"


def _is_assignments(file: Path) -> bool:
    return (file.parent / "assignment.toml").is_file() or file.parent.parent.name == "solutions"


# --- what stands behind a check's outcome: its failing example, the last call, the examples before it -----------------


@dataclass
class CheckEvidence:
    """What stands behind a check's outcome.

    `drawn` are the arguments of the failing example by name, `call` the last call that it made, `repeated` what it
    raised when it was run once more for this evidence, `diagnosis` what is wrong with it, where that is clear.
    `ran` are the arguments of all examples so far, in order.
    `is_secret` is whether the example was drawn under the secret seed, `origin` where it came from.
    """

    award: check_points.Award = field(default_factory=check_points.Award)
    drawn: dict[str, Any] = field(default_factory=dict)
    call: Call | None = None
    repeated: BaseException | None = None
    diagnosis: Diagnosis | None = None
    ran: list[tuple[Any, ...]] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)
    is_secret: bool = False
    origin: str = ""
