"""A course and its rules as data: due dates, lateness, attempts, extra credit, what is visible when.

Read from course.toml, at the top of a course's repository; everything else here is a pure function of numbers and
times. A time is always the submission's own, never the clock's, so that grading again tomorrow gives the same grade.

    [course]
    name = "GPU programming"
    assignments = ["vector_add", "softmax"]   # in their order; by default, as the tables below stand
    roster = "roster.csv"             # beside this file
    drop_lowest = 1                   # so many of the assignments with the smallest share count nothing
    pending = "left out"              # for every assignment that does not say otherwise
    path = ["assignments", "built-in"]  # where assignments are looked for: see gradekit.assignment
    [assignments.softmax]
    due = 2026-12-01T23:59:00+01:00
    closes = "7d"                     # after the due date, or a time; what comes later counts nothing
    grace = "15m"
    late = {percent_a_day = 10, at_most = 50}  # or percent_an_hour, or {steps = [["1d", 10], ["3d", 30]]}
    keep = "best"                     # or "last"
    scale = 100                       # what all points count in the grade book; as they are by default
    extra_credit = 10                 # points above the possible ones that may count; none by default
    pending = "left out"              # what points count that were not measured; or "lost", or "given"
    hidden = "after_due_date"         # visible, hidden, after_due_date or after_published
    weight = 2                        # in the course's total, beside the others' (1 by default)
    excused = ["bob"]                 # for whom it counts neither way in the course's total
    attempts = 3                      # later ones count nothing; as many as they like by default
    [assignments.softmax.extensions]
    ada = "2d"
    [assignments.softmax.leaderboard] # speeds are shown to the class: on the board is who chose a name for it
    ada = "Kernel Queen"
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from gradekit.assignment import course_file
from gradekit.checking import UsageError
from gradekit.credit import PendingPolicy, rounded

VISIBILITIES = ("visible", "hidden", "after_due_date", "after_published")
KEEPS = ("best", "last")
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
LATE_ENTRIES = ("percent_a_day", "percent_an_hour", "steps", "at_most")


class PolicyError(UsageError):
    """course.toml cannot be understood: which entry, what it says, and what it may say."""


@dataclass(frozen=True)
class LatePolicy:
    """What lateness costs, in percent of the points earned.

    `percent_a_day` for each day begun, `percent_an_hour` for each hour begun, or `steps`: (from this much lateness on,
    percent), rising; never more than `at_most`.
    """

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


@dataclass(frozen=True)
class Attempt:
    """One graded submission: points `earned` (under the course's decision on those `pending`) of those `possible`, and
    when it was `submitted`; `late` is whether the LMS says that it was late without saying when it came, `is_open`
    whether nothing could be measured."""

    earned: float
    possible: float
    pending: float = 0.0
    submitted: datetime | None = None
    key: str = ""
    late: bool = False
    is_open: bool = False

    def scaled(self, possible: float) -> Attempt:
        """The same attempt, of so many `possible` points; 0 leaves them as they are."""
        if not possible or not self.possible:
            return self
        part = possible / self.possible
        return replace(
            self, earned=rounded(self.earned * part), possible=possible, pending=rounded(self.pending * part)
        )


LATE_WITHOUT_TIME = "late, says the LMS, which does not say by how much: no points were taken off here"


@dataclass(frozen=True)
class CountedAttempt:
    """What the attempt counts: `points` after the `penalty` (in percent), and the sentence that explains them."""

    attempt: Attempt
    points: float
    penalty: float
    why: str = ""


def counted(attempt: Attempt, policy: Policy, student: str) -> CountedAttempt:
    """What `attempt` counts under `policy`."""
    attempt = attempt.scaled(policy.scale)
    if policy.is_closed(attempt.submitted, student):
        return CountedAttempt(attempt, 0.0, 100.0, "handed in after the assignment closed")
    earned = min(attempt.earned, attempt.possible + policy.extra_credit)
    late = policy.lateness(attempt.submitted, student)
    percent = policy.late.percent(late)
    why = f"{spelled(late)} late: {percent:g} % less" if percent else LATE_WITHOUT_TIME * attempt.late
    return CountedAttempt(attempt, rounded(earned * (100.0 - percent) / 100.0), percent, why)


def chosen_attempt(attempts: Sequence[Attempt], policy: Policy, student: str) -> CountedAttempt | None:
    """The attempt that counts: the best (of equals, the first), or the last that was handed in before closing; of no
    more than the policy allows."""
    allowed = sorted(attempts, key=_when)[: policy.attempts or None]
    marks = [counted(attempt, policy, student) for attempt in allowed]
    if not marks:
        return None
    if policy.keep == "last":
        return next((m for m in reversed(marks) if not policy.is_closed(m.attempt.submitted, student)), marks[-1])
    return max(marks, key=lambda m: m.points)


def _when(attempt: Attempt) -> datetime:
    return attempt.submitted or datetime.min.replace(tzinfo=UTC)


def spelled(duration: timedelta) -> str:
    """1 day, 2:05:00 -> "1 day 2 h"; 0:20:30 -> "20 min"."""
    if duration >= DAY:
        days, rest = divmod(duration, DAY)
        hours = rest // timedelta(hours=1)
        return f"{days} day{'s' * (days != 1)}" + (f" {hours} h" if hours else "")
    if duration >= timedelta(hours=1):
        hours, rest = divmod(duration, timedelta(hours=1))
        minutes = math.ceil(rest / timedelta(minutes=1))
        return f"{hours} h" + (f" {minutes} min" if 0 < minutes < 60 else "")
    return f"{max(math.ceil(duration / timedelta(minutes=1)), 1)} min"


# --- course.toml ------------------------------------------------------------------------------------------------------


def parse(table: Mapping[str, Any], where: str = "policy") -> Policy:
    """One assignment's table as a Policy.

    Raises:
        PolicyError: as above.
    """
    unknown = table.keys() - _READERS.keys()
    if unknown:
        raise PolicyError(f"{where} has no entry {min(unknown)!r}; there are {', '.join(_READERS)}")
    values = {name: _READERS[name](value, f"{where}.{name}") for name, value in table.items()}
    closes = values.pop("closes", None)
    policy = Policy(**values)
    if not isinstance(closes, timedelta):
        return replace(policy, closes=closes)
    if policy.due is None:
        raise PolicyError(f"{where}.closes is counted from a due date, and there is none")
    return replace(policy, closes=policy.due + closes)


def _time(value: Any, where: str) -> datetime:
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise PolicyError(f"{where} must be a time with its offset, as 2026-12-01T23:59:00+01:00, not {value!r}")
    return value


_UNITS = {"d": DAY, "h": timedelta(hours=1), "m": timedelta(minutes=1), "s": timedelta(seconds=1)}


def _duration(value: Any, where: str) -> timedelta:
    parts = re.findall(r"(\d+)\s*([dhms])", value) if isinstance(value, str) else []
    if not parts or re.sub(r"(\d+)\s*[dhms]|\s", "", value):
        raise PolicyError(f"{where} must be a duration such as 15m or 1d 12h, not {value!r}")
    return sum((int(number) * _UNITS[unit] for number, unit in parts), timedelta(0))


def _either(value: Any, where: str) -> timedelta | datetime:
    return _duration(value, where) if isinstance(value, str) else _time(value, where)


def _number(value: Any, where: str, most: float = math.inf) -> float:
    if type(value) not in (int, float) or not 0 <= value <= most:
        raise PolicyError(
            f"{where} must be a number from 0{'' if most == math.inf else f' to {most:g}'}, not {value!r}"
        )
    return float(value)


def _one_of(words: Sequence[str]) -> Any:
    def read(value: Any, where: str) -> str:
        if value not in words:
            raise PolicyError(f"{where} must be one of {', '.join(words)}, not {value!r}")
        return str(value)

    return read


def _table(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise PolicyError(f"{where} must be a table, not {value!r}")
    return value


def _late(value: Any, where: str) -> LatePolicy:
    table = _table(value, where)
    unknown = table.keys() - set(LATE_ENTRIES)
    if unknown:
        raise PolicyError(f"{where} has no entry {min(unknown)!r}; there are {', '.join(LATE_ENTRIES)}")
    return LatePolicy(
        _number(table.get("percent_a_day", 0), f"{where}.percent_a_day", 100),
        tuple(_step(step, f"{where}.steps") for step in table.get("steps", ())),
        _number(table.get("at_most", 100), f"{where}.at_most", 100),
        _number(table.get("percent_an_hour", 0), f"{where}.percent_an_hour", 100),
    )


def _step(value: Any, where: str) -> tuple[timedelta, float]:
    if not isinstance(value, list) or len(value) != 2:
        raise PolicyError(f'{where} must be pairs such as ["1d", 10], not {value!r}')
    return _duration(value[0], where), _number(value[1], where, 100)


def listed_names(value: Any, where: str) -> list[str]:
    """A list of names from course.toml.

    Raises:
        PolicyError: it is none.
    """
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise PolicyError(f"{where} must be a list of names, not {value!r}")
    return value


def _nicknames(value: Any, where: str) -> dict[str, str]:
    names = dict(_table(value, where))
    if not all(isinstance(name, str) for name in names.values()) or len(set(names.values())) < len(names):
        raise PolicyError(f"{where} must have a name of its own for each student, not {value!r}")
    return names


def _extensions(value: Any, where: str) -> dict[str, timedelta | datetime]:
    return {student: _either(more, f"{where}.{student}") for student, more in _table(value, where).items()}


_READERS = {
    "due": _time,
    "closes": _either,
    "grace": _duration,
    "late": _late,
    "keep": _one_of(KEEPS),
    "extra_credit": _number,
    "hidden": _one_of(VISIBILITIES),
    "extensions": _extensions,
    "scale": _number,
    "weight": _number,
    "attempts": lambda value, where: int(_number(value, where)),
    "leaderboard": _nicknames,
    "excused": lambda value, where: tuple(listed_names(value, where)),
    "pending": lambda value, where: PendingPolicy(_one_of(tuple(PendingPolicy))(value, where)),
}


# --- the course -------------------------------------------------------------------------------------------------------

_ENTRIES = ("name", "assignments", "roster", "drop_lowest", "pending", "path")


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
    """The course that the file at `path` describes.

    Raises:
        PolicyError: it is not TOML, or an entry is not what it may be.
        OSError: it cannot be read.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PolicyError(f"{path} is not TOML: {error}") from None
    course, tables = (_table(data.get(name, {}), name) for name in ("course", "assignments"))
    if unknown := course.keys() - set(_ENTRIES):
        raise PolicyError(f"course has no entry {min(unknown)!r}; there are {', '.join(_ENTRIES)}")
    drop, roster, name = course.get("drop_lowest", 0), course.get("roster", ""), course.get("name", "")
    if type(drop) is not int or drop < 0 or not isinstance(roster, str) or not isinstance(name, str):
        raise PolicyError("course.drop_lowest must be a whole number from 0, course.roster and course.name text")
    usual = {"pending": course["pending"]} if "pending" in course else {}
    order = dict.fromkeys((*listed_names(course.get("assignments", []), "course.assignments"), *tables))
    policies = {id: parse(usual | dict(tables.get(id, {})), f"assignments.{id}") for id in order}
    return Course(name, policies, drop, roster, parse(usual, "course").pending)


def above(folder: Path | None = None) -> Path | None:
    """The file of the course that `folder` (by default the current one) lies in; None where it lies in none."""
    return course_file(folder or Path.cwd())
