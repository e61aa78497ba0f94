"""A student's own attempts: what each check of a started assignment came to, in a file beside the submission."""

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gradekit.assignment import declared
from gradekit.report.text import scored

FILE = ".gradekit-attempts"


@dataclass(frozen=True)
class Attempt:
    """One check of a submission: when, and points `earned` of those `possible`, with those `pending`."""

    when: str
    earned: float
    possible: float
    pending: float

    @property
    def said(self) -> str:
        """ "56 of 100 points, 20 pending"."""
        return scored(self.earned, self.possible, self.pending)


def is_started(folder: Path, assignment: str) -> bool:
    """Whether `gradekit start` has laid the assignment's tests, or its answers, into the folder."""
    is_quiz = declared(folder / "answers.toml") == assignment
    return bool(assignment) and (is_quiz or (folder / f"test_{assignment}.py").is_file())


def read(folder: Path) -> list[Attempt]:
    """The attempts in a folder, oldest first; a line that is none is passed over."""
    try:
        lines = (folder / FILE).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    return [attempt for line in lines if (attempt := _attempt(line))]


def _attempt(line: str) -> Attempt | None:
    try:
        data = json.loads(line)
        found = Attempt(*(data[field.name] for field in fields(Attempt)))
        return found if found.said else None  # raises where one is no number
    except (ValueError, TypeError, KeyError):
        return None


def add(folder: Path, record: Mapping[str, Any]) -> None:
    """Keep the attempt that came to `record` in a started assignment's folder, if that can be written."""
    new = {"when": datetime.now(UTC).isoformat(timespec="seconds"), **record["score"]}
    with contextlib.suppress(OSError), (folder / FILE).open("a", encoding="utf-8") as file:
        file.write(json.dumps(new) + "\n")
