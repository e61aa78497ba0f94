"""Claims: what is to be decided of a call, and what was."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gradekit.program import Argument

PROVED, REFUTED, OPEN = "proved", "refuted", "open"

BOUNDS = "in-bounds"
WRAP = "no-wrap"
ONE_WRITER = "one-writer"
NO_RACE = "no-race"
COVERED = "covered"
GRID = "grid-limit"
TILE = "tile-limit"  # what is claimed, by name: see docs/proofs.md
GRAVITY = (REFUTED, OPEN, PROVED)


@dataclass(frozen=True)
class ProofVerdict:
    """What was decided of one claim. `subject` says of what ("store to the result"), `finding` is what the engine saw;
    `sizes` are those for which it does not hold, by the names of the arguments; `values` are the solver's. `why` is the
    reason where it is open, or the sentence where it is refuted. `call` is one that it is about."""

    kind: str
    subject: str
    verdict: str
    line: int | None = None
    kernel: str = ""
    launch: int = 0
    why: str = ""
    sizes: Mapping[str, int] = field(default_factory=dict)
    values: Mapping[str, int] = field(default_factory=dict)
    program: tuple[int, ...] = ()
    finding: str = ""
    exact: bool = False  # whether the formulas say all that decides it: then the engine must agree
    call: tuple[Argument, ...] = ()

    @property
    def claim(self) -> tuple[object, ...]:
        """What it decides: of several verdicts about one claim, the gravest counts."""
        return BOUNDS if self.kind == WRAP else self.kind, self.kernel, self.launch, self.line, self.subject

    def as_data(self) -> dict[str, Any]:
        """As the report record holds it."""
        data: dict[str, Any] = {"claim": self.kind, "subject": self.subject, "verdict": self.verdict, "line": self.line}
        data |= {"kernel": self.kernel, "why": self.why, "finding": self.finding, "sizes": dict(self.sizes)}
        return {name: value for name, value in data.items() if value}
