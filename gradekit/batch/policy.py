"""A course and its rules as data: due dates, lateness, attempts, extra credit, what is visible when.

Read from course.toml, as `gradekit/schemas/course.json` describes it; all else is a pure function of numbers and times.
A time is always the submission's own, never the clock's, so that grading again tomorrow gives the same grade.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

from gradekit.assignment import UsageError
from gradekit.credit import PendingPolicy
from gradekit.schemas import Problem, located, problems, read, schema

DAY, HOUR = timedelta(days=1), timedelta(hours=1)


@dataclass(frozen=True)
class LatePolicy:
    """What lateness costs, in percent of the points earned: for each day and hour begun, or by `steps` (from this much
    lateness on, percent), which rise; never more than `at_most`."""

    percent_a_day: float = 0.0
    steps: tuple[tuple[timedelta, float], ...] = ()
    at_most: float = 100.0
    percent_an_hour: float = 0.0

    def percent(self, late: timedelta) -> float:
        """The percent lost by a submission that is `late` (grace already taken off)."""
        if late <= timedelta(0):
            return 0.0
        by_time = self.percent_a_day * math.ceil(late / DAY) + self.percent_an_hour * math.ceil(late / HOUR)
        by_step = max((percent for after, percent in self.steps if late > after), default=0.0)
        return min(by_time + by_step, self.at_most, 100.0)


@dataclass(frozen=True)
class Policy:
    """The rules of one assignment; without a due date nothing is late."""

    due: datetime | None = None
    closes: datetime | None = None
    grace: timedelta = timedelta(0)
    late: LatePolicy = LatePolicy()
    keep: str = "best"
    extra_credit: float = 0.0
    hidden: str = "after_published"
    extensions: Mapping[str, timedelta | datetime] = field(default_factory=dict)
    scale: float = 0.0
    pending: PendingPolicy = PendingPolicy.LEFT_OUT
    weight: float = 1.0
    excused: tuple[str, ...] = ()
    attempts: int = 0
    leaderboard: Mapping[str, str] | None = None

    def due_for(self, student: str) -> datetime | None:
        """When the submission of `student` is due, with an extension where there is one."""
        extension = self.extensions.get(student)
        if isinstance(extension, datetime) or self.due is None:
            return extension if isinstance(extension, datetime) else None
        return self.due + (extension or timedelta(0))

    def lateness(self, submitted: datetime | None, student: str) -> timedelta:
        """How much later than due, less the grace; zero where either time is unknown."""
        due = self.due_for(student)
        if due is None or submitted is None:
            return timedelta(0)
        return max(submitted - due - self.grace, timedelta(0))

    def is_closed(self, submitted: datetime | None, student: str) -> bool:
        """Whether it came after the assignment closed; an extension moves that too."""
        if self.closes is None or submitted is None:
            return False
        due = self.due_for(student)
        moved = due - self.due if due and self.due else timedelta(0)
        return submitted > self.closes + max(moved, timedelta(0))

    def visibility(self, now: datetime, published: bool) -> bool:
        """Whether students may see the hidden checks at `now`."""
        reached = {"visible": True, "hidden": False, "after_published": published}
        return reached.get(self.hidden, self.due is not None and now >= self.due)


def spelled(duration: timedelta) -> str:
    """As lateness counts, what is begun is whole: 1 day, 2:05:00 -> "1 day 3 h"; 0:20:30 -> "21 min"."""
    if duration >= DAY:
        days, hours = divmod(math.ceil(duration / HOUR), 24)
        return f"{days} day{'s' * (days != 1)}" + (f" {hours} h" if hours else "")
    hours, minutes = divmod(max(math.ceil(duration / timedelta(minutes=1)), 1), 60)
    return " ".join(filter(None, (f"{hours} h" if hours else "", f"{minutes} min" if minutes else "")))


# --- course.toml ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Course:
    """A course: the `policies` of its assignments, by id and in its order."""

    name: str = ""
    policies: Mapping[str, Policy] = field(default_factory=dict)
    drop_lowest: int = 0
    roster: str = ""
    pending: PendingPolicy = PendingPolicy.LEFT_OUT

    def policy(self, id: str) -> Policy:
        """The rules of an assignment; the course's own where it has none."""
        return self.policies.get(id, Policy(pending=self.pending))


def load(path: Path) -> Course:
    """The course of the file at `path`. Raises UsageError where it is no TOML, or has a wrong entry."""
    text, said = read(path, UsageError)
    data = _with_times_as_text(said)
    for problem in (*problems(data, schema("course")), *_said_by_no_schema(data)):
        raise UsageError(located(path, text, problem))
    course, tables = data.get("course", {}), data.get("assignments", {})
    usual = {name: course[name] for name in ("pending",) if name in course}
    order = dict.fromkeys((*course.get("assignments", ()), *tables))
    policies = {id: _policy(usual | tables.get(id, {})) for id in order}
    given = {name: course[name] for name in ("name", "drop_lowest", "roster") if name in course}
    return Course(policies=policies, pending=_policy(usual).pending, **given)


def _with_times_as_text(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _with_times_as_text(value) for key, value in data.items()}
    return data.isoformat() if isinstance(data, (date, time)) else data


def _said_by_no_schema(data: Mapping[str, Any]) -> Iterator[Problem]:
    for id, table in data.get("assignments", {}).items():
        if "closes" in table and "due" not in table and isinstance(_either(table["closes"]), timedelta):
            yield Problem(("assignments", id, "closes"), "is counted from a due date, and there is none")
        names = list(table.get("leaderboard", {}).values())
        if len(set(names)) < len(names):
            yield Problem(("assignments", id, "leaderboard"), "must have a name of its own for each student")


def _policy(table: Mapping[str, Any]) -> Policy:
    policy = Policy(**{name: _READERS.get(name, lambda value: value)(value) for name, value in table.items()})
    if isinstance(policy.closes, timedelta) and policy.due:
        return replace(policy, closes=policy.due + policy.closes)
    return policy


def _duration(text: str) -> timedelta:
    parts = re.findall(r"(\d+)\s*([dhms])", text)
    units = {"d": DAY, "h": HOUR, "m": timedelta(minutes=1), "s": timedelta(seconds=1)}
    return sum((int(number) * units[unit] for number, unit in parts), timedelta(0))


def _either(text: str) -> timedelta | datetime:
    return datetime.fromisoformat(text) if "T" in text else _duration(text)


def _late(table: Mapping[str, Any]) -> LatePolicy:
    steps = tuple((_duration(after), percent) for after, percent in table.get("steps", ()))
    return LatePolicy(**dict(table) | {"steps": steps})


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "due": datetime.fromisoformat, "closes": _either, "grace": _duration, "late": _late, "excused": tuple,
    "extensions": lambda table: {student: _either(more) for student, more in table.items()},
    "pending": PendingPolicy,
}  # fmt: skip
