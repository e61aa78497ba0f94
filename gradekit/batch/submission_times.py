"""When hand-ins came, where a download does not say it and the LMS tells it elsewhere.

canvas   the answer of its API to .../assignments/ID/submissions, as JSON: user_id and submitted_at
moodle   the grading worksheet: "Participant 4711" and "Last modified (submission)", in the site's own time
other    a CSV with the columns student and submitted (ISO 8601 with its offset)
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

from gradekit.batch.intake import HandIn
from gradekit.checking import UsageError

_MOODLE = "Last modified (submission)"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_TIME = re.compile(r"(?:\w+, )?(\d{1,2}) ([A-Z][a-z]{2})[a-z]* (\d{4}), (\d{1,2}):(\d\d)(?:\s*([AP])M)?", re.IGNORECASE)
"""As Moodle writes it in English: "Tuesday, 1 December 2026, 1:05 PM"."""


class TimesError(UsageError):
    """The file does not say when hand-ins came: what it has, and what was looked for."""


def load(path: Path, zone: tzinfo | None = None) -> dict[str, datetime]:
    """By the LMS's number or the student's key, when the hand-in came; a worksheet's times are of the `zone` (by
    default, this machine's).

    Raises:
        TimesError: it is none of these files, or a time cannot be read.
        OSError: it cannot be opened.
    """
    text = path.read_text(encoding="utf-8-sig")
    if text.lstrip().startswith("["):
        return dict(_canvas(json.loads(text)))
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    header = list(rows[0]) if rows else []
    if _MOODLE in header:
        key = header[0]
        return {row[key].rpartition(" ")[2]: _moodle(row[_MOODLE], zone) for row in rows if row[_MOODLE].strip(" -")}
    if {"student", "submitted"} <= set(header):
        return {row["student"]: _iso(row["submitted"]) for row in rows if row["submitted"]}
    raise TimesError(f"{path} has {', '.join(header) or 'nothing'}: expected student and submitted, or {_MOODLE}")


def _canvas(found: Iterable[Mapping[str, Any]]) -> Iterable[tuple[str, datetime]]:
    for each in found:
        if each.get("submitted_at"):
            yield str(each["user_id"]), _iso(str(each["submitted_at"]))


def _iso(text: str) -> datetime:
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        when = None
    if when is None or when.tzinfo is None:
        raise TimesError(f"{text!r} is no time with its offset, such as 2026-12-01T23:59:00+01:00")
    return when


def _moodle(text: str, zone: tzinfo | None) -> datetime:
    found = _TIME.fullmatch(text.strip())
    if found and found[2].lower() in _MONTHS:
        hour = int(found[4]) % 12 + 12 * (found[6].upper() == "P") if found[6] else int(found[4])
        day = (int(found[3]), _MONTHS.index(found[2].lower()) + 1, int(found[1]))
        when = datetime(*day, hour, int(found[5]), tzinfo=zone)
        return when if zone else when.astimezone()
    raise TimesError(f"{_MOODLE} says {text!r}, which is no time in English: give a CSV with student and submitted")


def timed(hand_ins: Iterable[HandIn], times: Mapping[str, datetime]) -> list[HandIn]:
    """The hand-ins with their times, where a download has none."""
    return [replace(h, submitted=times.get(h.student)) if h.submitted is None else h for h in hand_ins]
