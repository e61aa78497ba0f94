"""A failed claim about a submission: why, in the student's words, with the evidence for a diagnosis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradekit.findings import Cause

if TYPE_CHECKING:
    from gradekit.judge.compare import Comparison


class Failure(AssertionError):
    """The submission is wrong here.

    Args:
        cause: the machine-readable word.
        message: one or two plain sentences for the student.
        line: the submission's line that is to blame, where it is known.
        facts: numbers and strings that a report may show; JSON-codable.
        comparison: the element-wise evidence, where values were compared.
    """

    def __init__(
        self,
        cause: Cause,
        message: str,
        *,
        line: int | None = None,
        facts: dict[str, Any] | None = None,
        comparison: Comparison | None = None,
    ) -> None:
        super().__init__(message)
        self.cause = cause
        self.message = message
        self.line = line
        self.facts = facts or {}
        self.comparison = comparison
