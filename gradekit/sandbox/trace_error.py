"""Why a submission was not loaded or traced."""

from __future__ import annotations

from gradekit.findings import Cause


class TraceError(Exception):
    """The submission was not loaded or traced: why, at which of its lines, and what Triton or Python itself said.

    `hint` is what to do about it, in gradekit's words; the last line of `message` where it is not empty.
    """

    def __init__(
        self, cause: Cause, message: str, line: int | None = None, detail: str = "", hint: str = ""
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.cause = cause
        self.message = message
        self.line = line
        self.detail = detail
        self.hint = hint

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
