"""A failed claim about a submission: why, in the student's words, with the evidence for a diagnosis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradekit.findings import Cause, Finding
from gradekit.judge.comparison import Comparison


class NeedsPerson(Exception):
    """A check rests on what the submission's own process says: a person must confirm it; `message` says why."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Failure(AssertionError):
    """The submission is wrong here: the `cause`, a `message` of one or two sentences for the student, the `line` to
    blame, `facts` for a report, JSON-codable, the `comparison` of values, and what was `seen` in memory before: its
    cause is `told`. `repeat` tries it once more on another subject, where it is more than one call, and raises so;
    `given` are the arguments of the call that is wrong, where that is not the last one."""

    def __init__(
        self, cause: Cause, message: str, *, line: int | None = None, facts: dict[str, Any] | None = None,
        comparison: Comparison | None = None, seen: Finding | None = None,
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.cause, self.seen, self.told = cause, seen, seen.cause if seen is not None else cause
        self.message = message
        self.line = line
        self.facts = facts or {}
        self.comparison = comparison
        self.repeat: Callable[[Any], None] | None = None
        self.given: Sequence[Any] = ()

    def naming(self, circumstance: str) -> Failure:
        """The same failure, with the `circumstance` under which it was seen in front of its message."""
        message = circumstance + self.message[:1].lower() + self.message[1:]
        facts, comparison = self.facts, self.comparison
        named = Failure(self.cause, message, line=self.line, facts=facts, comparison=comparison, seen=self.seen)
        named.given = self.given
        return named


class Idle:
    """A call that launches no kernel for its results, which may be because nothing is left to compute. Its result
    decides: where it is wrong, `offence` is why, and `is_right` says that it has been seen to be right. It does not
    depend on the inputs' values, or it `copies` an input."""

    def __init__(self, offence: Failure, *, copies: bool = False) -> None:
        self.offence = offence
        self.copies = copies
        self.is_right = False

    def failure(self, wrong: Failure) -> Failure:
        """The offence, with what is `wrong` with the result."""
        message = f"{self.offence.message} {wrong.message}"
        return Failure(self.offence.cause, message, facts=wrong.facts, comparison=wrong.comparison)


def sentence(finding: Finding) -> str:
    """What the engine found, as a sentence with its line."""
    text = (
        f"Line {finding.line}: {finding.message}" if finding.line else finding.message[:1].upper() + finding.message[1:]
    )
    called = f" Line {finding.line} is called from line {caller}." if (caller := finding.facts.get("caller")) else ""
    return f"{text if text.endswith(('.', '?', '!')) else f'{text}.'}{called}"
