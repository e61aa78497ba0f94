"""What was seen and what it is worth: findings, outcomes, checks and the report record.

Data only. Every vocabulary here is closed: an outcome, a kind or a cause that is not listed cannot be constructed.
docs/report.md documents the record field by field, and report/schema.json validates it.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from gradekit.causes import Cause
from gradekit.credit import total

SCHEMA = "gradekit/report/1"


class Status(StrEnum):
    """What became of the submission as a whole."""

    GRADED = "graded"
    REJECTED = "rejected"  # could not be read, loaded or traced: all points are 0, `message` says why
    FAULT = "fault"  # the grader itself failed: nothing is 0


class Outcome(StrEnum):
    """What became of one check."""

    PASSED = "passed"
    FAILED = "failed"
    PENDING = "pending"  # this machine could not measure it: never zero
    FAULT = "fault"  # the grader failed, not the student


class Kind(StrEnum):
    """What a check is about."""

    CORRECTNESS = "correctness"
    MEMORY = "memory"
    STRUCTURE = "structure"
    SPEED = "speed"
    QUIZ = "quiz"


@dataclass(frozen=True)
class SourceLine:
    """A line of the submission, 1-based, with its text as the student wrote it."""

    line: int
    text: str


@dataclass(frozen=True)
class Finding:
    """Something wrong that the engine saw in memory, whether or not it changed the result.

    `tensor` names the tensor as the student knows it ("x", "the result", "`mean_ptr`"); `elements` are the first few
    element indices in it and `count` how many there were in all; `programs` the (x, y, z) program ids beside each
    element; `line` is the submission's line, or None where it is unknown.
    """

    cause: Cause
    message: str
    line: int | None = None
    kernel: str = ""
    launch: int = 0
    tensor: str = ""
    elements: tuple[tuple[int, ...], ...] = ()
    programs: tuple[tuple[int, int, int], ...] = ()
    count: int = 0
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Check:
    """One test of the assignment: `id` is the pytest name, `title` the first line of its docstring. The points of a
    `bonus` come on top of those that are possible; to miss it is no failure."""

    id: str
    title: str
    kind: Kind
    outcome: Outcome
    earned: float
    possible: float
    message: str = ""
    cause: Cause | None = None
    source: SourceLine | None = None
    counterexample: dict[str, Any] | None = None
    details: dict[str, Any] = field(default_factory=dict)
    bonus: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.earned <= self.possible:
            raise ValueError(f"{self.id}: earned {self.earned} of {self.possible}")
        if self.outcome is Outcome.PASSED and self.earned != self.possible:
            raise ValueError(f"{self.id}: passed with {self.earned} of {self.possible}")

    @property
    def lost(self) -> bool:
        """Whether it counts against the submission."""
        return self.outcome is Outcome.FAILED and not self.bonus


@dataclass(frozen=True)
class Score:
    """Points: `pending` are neither earned nor lost. With a bonus, earned may pass what is possible."""

    earned: float
    possible: float
    pending: float


@dataclass(frozen=True)
class Report:
    """The record, version 1: everything that a renderer may show."""

    assignment: str
    status: Status
    submission: dict[str, Any]
    checks: tuple[Check, ...]
    environment: dict[str, Any]
    seconds: float
    message: str = ""
    cause: Cause | None = None
    source: SourceLine | None = None
    notes: tuple[str, ...] = ()
    seed: int = 0

    @property
    def score(self) -> Score:
        """The sum over checks; a check that met a fault counts as pending, for it is nobody's zero."""
        waiting = (Outcome.PENDING, Outcome.FAULT)
        ordinary = [c for c in self.checks if not c.bonus]
        return Score(
            earned=total(c.earned for c in self.checks),
            possible=total(c.possible for c in ordinary),
            pending=total(c.possible - c.earned for c in ordinary if c.outcome in waiting),
        )
