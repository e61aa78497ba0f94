"""The class list: who should have handed in, and by what names an LMS may call them."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from gradekit.batch.intake import HandIn
from gradekit.checking import UsageError

T = TypeVar("T")

_COLUMNS = {
    "student": ("student id", "id", "sid", "user id", "userid", "sis user id", "username", "login", "sis login id"),
    "name": ("name", "full name", "student name", "display name", "student"),
    "first": ("first name", "firstname", "given name", "first"),
    "last": ("last name", "lastname", "surname", "family name", "last"),
    "email": ("email", "email address", "e mail", "mail"),
}  # fmt: skip


class RosterError(UsageError):
    """The class list cannot be read: which column is missing, and which are there."""


@dataclass(frozen=True)
class Student:
    """A line of the class list: `student` is the key of the grade book."""

    student: str
    name: str = ""
    email: str = ""
    others: tuple[str, ...] = ()


def load(path: Path) -> list[Student]:
    """The students of a CSV file with a header; any of the usual names for the columns will do.

    Raises:
        RosterError: no column tells one student from another.
        OSError: it cannot be read.
    """
    with path.open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
        header = list(rows[0]) if rows else []
    columns = {kind: _column(header, names) for kind, names in _COLUMNS.items()}
    key = columns["student"] or columns["email"] or _column(header, ("student",))
    if key is None:
        raise RosterError(f"{path} has no column for a student's id or email; it has {', '.join(header) or 'no rows'}")
    return [_student(row, key, columns) for row in rows if (row[key] or "").strip() and not _is_canvas_special(row)]


def _is_canvas_special(row: Mapping[str, str]) -> bool:
    """Canvas's grade book, which is its class list too, has a row of points, and a student who is a test."""
    name = (row.get("Student") or "").strip()
    return "Points Possible" in name or name in ("Student, Test", "Test Student")


def _column(header: Iterable[str], names: tuple[str, ...]) -> str | None:
    by_name = {_plain(column): column for column in reversed(list(header)) if column}
    return next((by_name[name] for name in names if name in by_name), None)


def _plain(column: str) -> str:
    """ "Student_ID" -> "student id"."""
    return " ".join(column.lower().replace("_", " ").replace("-", " ").split())


def _student(row: Mapping[str, str], key: str, columns: Mapping[str, str | None]) -> Student:
    def get(kind: str) -> str:
        column = columns[kind]
        return (row[column] or "").strip() if column else ""

    last, _, first = get("name").partition(", ")  # "Lovelace, Ada"
    name = (f"{first} {last}" if first else get("name") or f"{get('first')} {get('last')}").strip()
    ids = [column for column in row if column and _plain(column) in _COLUMNS["student"]]
    others = tuple(dict.fromkeys(value.strip() for column in ids if (value := row[column] or "").strip()))
    return Student(row[key].strip(), name, get("email"), others)


def matched(hand_ins: Iterable[HandIn], roster: Iterable[Student]) -> list[HandIn]:
    """The hand-ins under the class list's keys and names; who is not on it stays as the LMS calls them."""
    known = by_word((s, {s.student, s.email, s.name, squeezed(s.name), *s.others}) for s in roster)
    return [_as(hand_in, known) for hand_in in hand_ins]


def by_word(named: Iterable[tuple[T, set[str]]]) -> dict[str, T | None]:
    """Every word, in small letters, that means one of those that are `named` by some words; None where it could mean
    two."""
    index: dict[str, T | None] = {}
    for one, words in named:
        for key in {word.lower() for word in words if word}:
            index[key] = one if index.get(key, one) == one else None
    return index


def _as(hand_in: HandIn, known: Mapping[str, Student | None]) -> HandIn:
    words = (hand_in.student, hand_in.email, hand_in.name, squeezed(hand_in.name))
    student = next((found for word in words if word and (found := known.get(word.lower()))), None)
    if student is None:
        return hand_in
    return replace(hand_in, student=student.student, name=student.name or hand_in.name, email=student.email)


def squeezed(name: str) -> str:
    """ "Lovelace, Ada" and "Ada Lovelace" -> Canvas writes "lovelaceada": last name first, letters alone."""
    first, _, last = name.rpartition(" ") if "," not in name else (name.partition(",")[2], "", name.partition(",")[0])
    return "".join(character for character in (last + first).lower() if character.isalnum())


def strangers(hand_ins: Iterable[HandIn], roster: Iterable[Student]) -> list[str]:
    """Who has handed in and is not on the class list, if there is one."""
    known = {student.student for student in roster}
    return sorted({hand_in.student for hand_in in hand_ins} - known) if known else []
