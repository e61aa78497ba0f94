"""Points: partial credit, which a check says of itself while it runs, and what a course may decide that points count
which were not measured.

Data alone: the plugin opens an Award for each check and reads it when the check has ended.
"""

import math
from collections.abc import Iterable
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum


class PendingPolicy(StrEnum):
    """What a course decides that points count which nobody could measure, such as those for speed without a GPU."""

    LEFT_OUT = "left out"
    LOST = "lost"
    GIVEN = "given"


@dataclass
class Award:
    """Partial credit of the check that runs now: the smallest fraction awarded so far, and the reason given with it."""

    fraction: float = 1.0
    why: str = ""
    cause: str = ""


def total(points: Iterable[float]) -> float:
    """The sum of points, rounded to a billionth: thirds and tenths that make up a whole give that whole."""
    return rounded(math.fsum(points))


def rounded(points: float) -> float:
    """Points to a billionth: a share of them is a float, and 0.1 * 3 is to read as 0.3."""
    return round(points, 9)


_award: ContextVar[Award | None] = ContextVar("gradekit award", default=None)


def award(fraction: float, why: str, cause: str = "") -> None:
    """Give partial credit: the check earns `fraction` (0 to 1) of its points, the report says `why`, and the test goes
    on. The smallest of several awards counts, also over Hypothesis's examples; an assertion that fails still fails the
    whole check. `cause` is a word from `Cause`. Raises ValueError for any other fraction, and RuntimeError where no
    check is running."""
    if not 0 <= fraction <= 1:
        raise ValueError(f"award takes a fraction between 0 and 1, got {fraction}")
    current = _award.get()
    if current is None:
        raise RuntimeError("award() was called outside of a graded check")
    if fraction < current.fraction:
        current.fraction, current.why, current.cause = fraction, why, cause


class awarding:
    """While this context is open, `award` writes to the Award that it gives: one for each check."""

    def __enter__(self) -> Award:
        award = Award()
        self._token = _award.set(award)
        return award

    def __exit__(self, *_: object) -> None:
        _award.reset(self._token)
