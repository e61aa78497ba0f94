"""The progress of grading a class: a line for each result, and an estimate of the time that the rest takes.

Two counts, one for each stage: submissions that are graded, and those whose speed is measured on a GPU.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from gradekit.batch import summary
from gradekit.batch.gpu_stage import awaits_gpu
from gradekit.batch.policy import spelled
from gradekit.report.text import one_line, seconds, shortened

WIDTH = 160
WINDOW = 40
"""The last so many results say how fast it goes: the first ones wait until graders have started."""

MIN_RESULTS = 3
"""Results from which on the remaining time is estimated."""

Say = Callable[[str], None]


class Count:
    """How many of `total` are done, and when the last ones were."""

    def __init__(self, total: int) -> None:
        self.done, self.total = 0, total
        self._times: deque[float] = deque(maxlen=WINDOW)

    def add(self, now: float) -> None:
        """One more is done."""
        self.done += 1
        self._times.append(now)

    def __str__(self) -> str:
        """3/40, 5 min left."""
        return f"{self.done}/{self.total}{self._left()}"

    def _left(self) -> str:
        missing = self.total - self.done
        if missing <= 0 or len(self._times) < MIN_RESULTS:
            return ""
        left = missing * (self._times[-1] - self._times[0]) / (len(self._times) - 1)
        return f", {duration(left)} left"


def duration(value: float) -> str:
    """8.2 -> "8.2 s", 200 -> "4 min", 5000 -> "1 h 24 min"."""
    if value < 100:
        return seconds(value)
    hours, rest = divmod(value, 3600)
    return " ".join(filter(None, (f"{hours:.0f} h" if hours else "", spelled(timedelta(seconds=rest)))))


class ProgressLog:
    """Says a line for each result.

    `names` are the students by digest, `todo` how many submissions are to be graded; of `waiting` others the speed
    alone is to be measured, as it will be of those that are graded now where there `are_cards`.
    """

    def __init__(
        self, names: Mapping[str, str], todo: int, waiting: int, are_cards: bool, say: Say,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._names, self._are_cards, self._say, self._clock = names, are_cards, say, clock
        self._graded, self._measured = Count(todo), Count(waiting)

    @property
    def state(self) -> str:
        """How many submissions are graded, and how long the rest will take: "3/40, 5 min left"."""
        return str(self._graded)

    def graded(self, digest: str, found: Mapping[str, Any]) -> None:
        """A submission has its result."""
        self._graded.add(self._clock())
        self._measured.total += self._are_cards and awaits_gpu(found)
        self._write(str(self._graded), digest, found)

    def measured(self, digest: str, found: Mapping[str, Any]) -> None:
        """A submission's speed was measured."""
        self._measured.add(self._clock())
        card = one_line(str(found["environment"].get("gpu")))
        self._write(f"speed {self._measured}, on {card}", digest, found)

    def _write(self, head: str, digest: str, found: Mapping[str, Any]) -> None:
        self._say(shortened(f"[{head}] {summary.line_for(self._names[digest], found)}", WIDTH))
