"""course.toml, at the top of a course's repository: its assignments in order, their rules and weights, its class list.

    [course]
    name = "GPU programming"
    assignments = ["vector_add", "softmax"]   # in their order; by default, as the tables below stand
    roster = "roster.csv"                     # beside this file
    drop_lowest = 1                           # so many of the assignments with the smallest share count nothing
    pending = "left out"                      # for every assignment that does not say otherwise
    path = ["assignments", "built-in"]        # where assignments are looked for: see gradekit.assignment
    [assignments.softmax]
    weight = 2                                # beside the others', 1 by default; the rest: see gradekit.batch.policy
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gradekit.assignment import COURSE_FILE, course_file
from gradekit.batch.policy import Policy, PolicyError, listed_names, parse
from gradekit.credit import PendingPolicy

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
    course, tables = _table(data, "course"), _table(data, "assignments")
    if unknown := course.keys() - set(_ENTRIES):
        raise PolicyError(f"course has no entry {min(unknown)!r}; there are {', '.join(_ENTRIES)}")
    drop, roster, name = course.get("drop_lowest", 0), course.get("roster", ""), course.get("name", "")
    if type(drop) is not int or drop < 0 or not isinstance(roster, str) or not isinstance(name, str):
        raise PolicyError("course.drop_lowest must be a whole number from 0, course.roster and course.name text")
    usual = {"pending": course["pending"]} if "pending" in course else {}
    order = dict.fromkeys((*listed_names(course.get("assignments", []), "course.assignments"), *tables))
    policies = {id: parse(usual | dict(tables.get(id, {})), f"assignments.{id}") for id in order}
    return Course(name, policies, drop, roster, parse(usual, "course").pending)


def _table(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = data.get(name, {})
    if not isinstance(table, dict):
        raise PolicyError(f"{name} must be a table, not {table!r}")
    return table


def above(folder: Path | None = None) -> Path | None:
    """The file of the course that `folder` (by default the current one) lies in; None where it lies in none."""
    return course_file(folder or Path.cwd())


__all__ = ["COURSE_FILE", "Course", "above", "load"]
