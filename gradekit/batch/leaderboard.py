"""Speeds of a class beside each other: a board of those who want to be on it, and where a student stands.

Pure functions of records.

Speeds are ratios with an interval: who cannot be told apart shares a rank.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gradekit.report import templates
from gradekit.report.text import one_line

SIDE = "eager"
"""What speeds are compared against: torch, call by call, which every measured check has."""


@dataclass(frozen=True)
class Speed:
    """How many times as fast as torch a student's call is, with the interval of that ratio."""

    student: str
    value: float
    low: float
    high: float

    @property
    def said(self) -> str:
        """ "1.25 (1.2 to 1.3)"."""
        return f"{self.value:.3g} ({self.low:.3g} to {self.high:.3g})"


def speeds(records: Mapping[str, Mapping[str, Any]]) -> dict[str, list[Speed]]:
    """By title of the speed check and size, the speeds of all students (by whom the records are), the fastest first."""
    found: dict[str, list[Speed]] = {}
    for student, record in records.items():
        for title, ratio in _ratios(record):
            speed = Speed(student, float(ratio["value"]), float(ratio["low"]), float(ratio["high"]))
            found.setdefault(title, []).append(speed)
    return {title: sorted(each, key=lambda speed: (-speed.value, speed.student)) for title, each in found.items()}


def _ratios(record: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for check in record["checks"]:
        speed = check["details"].get("speed", {})
        if SIDE in speed.get("ratios", {}) and check["outcome"] in ("passed", "failed"):
            yield f"{one_line(check['title'])}, {one_line(speed['size'])}", speed["ratios"][SIDE]


def ranked(found: Sequence[Speed]) -> list[tuple[int, Speed]]:
    """Each speed with its rank; one whose interval reaches the first of a rank's shares that rank."""
    ranks: list[tuple[int, Speed]] = []
    first = None
    for place, speed in enumerate(found, start=1):
        if first is None or speed.high < first[1].low:
            first = (place, speed)
        ranks.append((first[0], speed))
    return ranks


def board(assignment: str, found: Mapping[str, Sequence[Speed]], nicknames: Mapping[str, str]) -> str:
    """The page with those who have a nickname, and nobody else; empty where none of them was timed."""
    tables = []
    for title, each in found.items():
        shown = ranked([speed for speed in each if speed.student in nicknames])
        shares = [rank for rank, _ in shown]
        rows = [
            [_cell(f"{rank} (tie)" if shares.count(rank) > 1 else str(rank)), _cell(nicknames[speed.student]),
             _cell(speed.said)] for rank, speed in shown
        ]  # fmt: skip
        tables += [{"title": title, "head": ["Rank", "Who", "Times as fast as torch"], "rows": rows}] if rows else []
    if not tables:
        return ""
    said = "Whose intervals overlap share a rank. On it is who chose a name for it."
    view = {"title": f"{one_line(assignment)}: speeds", "said": said, "tables": tables, "link": ()}
    return templates.page("course.html", view)


def standing(student: str, found: Mapping[str, Sequence[Speed]]) -> Iterable[str]:
    """Where a student's speeds stand in the class: a sentence for each check, without anybody's name."""
    for title, each in found.items():
        mine = next((speed for speed in each if speed.student == student), None)
        if mine and len(each) > 1:
            slower = sum(speed.high < mine.low for speed in each)
            faster = sum(speed.low > mine.high for speed in each)
            yield (f"Your speed in the class ({title}): {mine.said} times torch; {faster} of {len(each) - 1} others are"
                   f" faster, {slower} slower, the rest cannot be told from yours.")  # fmt: skip


def _cell(text: str) -> dict[str, str]:
    return {"text": one_line(text), "link": ""}
