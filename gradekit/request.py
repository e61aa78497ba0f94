"""What a grading run is asked for, as one value: the command line, pytest's options, a class and an LMS all make it.

Data only. `GradingOptions` are plain values, which travel to other machines and into a class's store as they are; a
`GradingRequest` says in addition what is graded, and by which assignment.
"""

import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from gradekit.assignment import Assignment
from gradekit.findings import Kind
from gradekit.program import Program
from gradekit.sandbox import Limits
from gradekit.submission import Submission

PROFILE_NAMES = ("quick", "default", "thorough")
"""How many examples a run tries: few, the usual number, or a thousand for each check."""

TRIVIAL_RESULTS = ("zeros", "constant", "first_input", "lower_precision")
"""Results that come without a kernel: all zeros, one value, the first argument, the right one with low bits lost."""


@dataclass(frozen=True, kw_only=True)
class GradingOptions:
    """How to grade.

    Attributes:
        keyword: run only the checks whose names match, as pytest's -k.
        kind: run only the checks of this kind.
        seed: draw other examples than the release's; None: the seed in assignment.toml.
        secret_seed: try the examples that this seed draws as well, with values that nobody can predict who does not
            know it; no report names it.
        inputs: try this one example alone, as `gradekit.inputs.as_text` writes it.
        profile: one of PROFILE_NAMES.
        hidden: run the staff's hidden tests too, where there are any.
        device: "auto" (a GPU if there is one), "cpu" (none), "cuda" or "cuda:1".
        trivial: one of TRIVIAL_RESULTS: judge this wrong result in place of the submission's.
        shrink: look for the smallest example that fails; else the simplest that was drawn is shown, which is faster.
        diagnose: look for the cause of a failure, also by mended programs; else a failure has its message alone.
        stop: end at the first check that fails; those after it are left out.
        jobs: run checks in so many processes at once, where no card takes part and it pays.
        isolation: the level of isolation below which no submission is run (see doctor); None: any.

    Raises:
        ValueError: there is no such profile, trivial result or kind of check.
    """

    keyword: str | None = None
    kind: str | None = None
    seed: int | None = None
    secret_seed: int | None = None
    inputs: str | None = None
    profile: str = "default"
    hidden: bool = False
    device: str = "auto"
    trivial: str | None = None
    shrink: bool = True
    diagnose: bool = True
    stop: bool = False
    jobs: int = 1
    isolation: int | None = None

    def __post_init__(self) -> None:
        _one_of("profile", self.profile, PROFILE_NAMES)
        _one_of("trivial", self.trivial, (None, *TRIVIAL_RESULTS))
        _one_of("kind", self.kind, (None, *(kind.value for kind in Kind)))

    def to_json(self) -> dict[str, Any]:
        """The options that differ from the defaults, as JSON data: `GradingOptions(**data)` reads them again."""
        usual = asdict(GradingOptions())
        return {name: value for name, value in asdict(self).items() if value != usual[name]}


@dataclass(frozen=True)
class GradingRequest:
    """Grade `submission`, a path or one that has been read. With `programs`, what its calls became on another machine
    (see gradekit.recorded), it is not executed here; `limits` are its own process's."""

    assignment: Assignment
    submission: Path | Submission
    options: GradingOptions = field(default_factory=GradingOptions)
    programs: Mapping[str, Program] | None = None
    limits: Limits = field(default_factory=Limits)

    @property
    def path(self) -> Path:
        """What reports call the submission."""
        return Path(self.submission.path) if isinstance(self.submission, Submission) else self.submission

    @property
    def seed(self) -> int:
        """The seed that examples are drawn under."""
        return self.assignment.seed if self.options.seed is None else self.options.seed


def new_secret_seed() -> int:
    """A seed that nobody can guess."""
    return secrets.randbits(62)


def _one_of(name: str, value: str | None, known: tuple[str | None, ...]) -> None:
    if value not in known:
        raise ValueError(f"there is no {name} {value!r}; there are {', '.join(filter(None, known))}")
