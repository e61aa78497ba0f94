"""A folder with one report for each student: as a page, as text, and as the record; and all of them as one zip, under
the names of the LMS's download, by which it knows them again (Canvas: "Submission Re-Upload", Moodle: "Upload multiple
feedback files in a zip")."""

import contextlib
import io
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gradekit.batch.gradebook import Line, distinct
from gradekit.batch.intake import HandIn, lms_prefix
from gradekit.credit import PendingPolicy
from gradekit.report import page, record, terminal
from gradekit.report.grade import LEFT_OUT, grade
from gradekit.report.text import points
from gradekit.submission import SubmissionError, read


def write(
    folder: Path, student: str, found: Mapping[str, Any], source: str = "", hand_in: Sequence[tuple[str, str]] = ()
) -> Path:
    """Write the report `found` of `student` under `folder`; the folder that it is in. The page shows the submission's
    `source`, and facts on the hand-in by name. Raises OSError where it cannot be written."""
    place = folder / safe_name(student)
    place.mkdir(parents=True, exist_ok=True)
    record.write(record.dumps(found), place / "report.json")
    record.write(terminal.render(found), place / "report.txt")
    record.write(page.render(found, source, hand_in), place / "report.html")
    return place


def safe_name(student: str) -> str:
    """A file name for this student and no other: letters, digits and ._@- stay; where anything was changed, a digest of
    the whole name follows after a ~. It never begins with a hyphen, so that no command takes it for an option."""
    return distinct(re.sub(r"[^\w.@-]+", "_", student).strip(".").lstrip("-")[:100], student)


def hand_in_facts(line: Line) -> list[tuple[str, str]]:
    """What the grade book has, by name: whose hand-in it is, which attempt, lateness, penalty and total."""
    facts = [("student", line.label)]
    facts += [("handed in", line.submitted.strftime("%Y-%m-%d %H:%M %Z").strip())] if line.submitted else []
    facts += [("attempt", f"the one that counts, of {line.attempts}")] if line.attempts else []
    if line.counts:
        facts.append(("lateness", line.note or "late") if line.penalty else ("lateness", "none"))
        facts.append(("penalty", f"{points(line.penalty)} %" if line.penalty else "none"))
        facts.append(("in the grade book", f"{points(line.points)} of {points(line.possible)} points"))
    return facts


def source(given: Iterable[HandIn], student: str, found: Mapping[str, Any]) -> str:
    """The text that the report `found` on a hand-in of `student` is of; empty where it cannot be read any more."""
    for hand_in in given:
        if hand_in.student == student:
            with contextlib.suppress(SubmissionError, OSError):
                text = read(hand_in.path)
                if text.facts().get("sha256") == found["submission"].get("sha256"):
                    return text.text
    return ""


def with_grade(found: Mapping[str, Any], line: Line, pending: PendingPolicy = LEFT_OUT) -> dict[str, Any]:
    """`found` with a note of what the grade book has, and of what points count that are `pending`."""
    notes = [*found["notes"], *filter(None, [grade(found, pending).said])]
    if line.counts:
        parts = [f"In the grade book: {points(line.points)} of {points(line.possible)} points"]
        parts += [f"{points(line.penalty)} % were taken off"] if line.penalty else []
        parts += [line.note] if line.note and line.note != found["message"] else []
        parts += [f"this is the attempt that counts, of {line.attempts}"] if line.attempts > 1 else []
        notes.append("; ".join(parts) + ".")
    return dict(found) | {"notes": notes}


def visible(found: Mapping[str, Any], hidden_are_seen: bool) -> dict[str, Any]:
    """`found` as the student may see it: of hidden checks only the points, until their time has come."""
    if hidden_are_seen:
        return dict(found)
    checks = [_veiled(check) if check["details"].get("hidden") else check for check in found["checks"]]
    return dict(found) | {"checks": checks}


def _veiled(check: Mapping[str, Any]) -> dict[str, Any]:
    said = "" if check["outcome"] == "passed" else "A hidden check. What it found is shown later."
    return dict(check) | {
        "title": "Hidden check", "message": said, "cause": None, "hint": "", "source": None, "counterexample": None,
        "details": {"hidden": True},
    }  # fmt: skip


def zipped(given: Iterable[HandIn], folder: Path) -> tuple[bytes, int]:
    """The zip of all reports under `folder`, named by each student's last hand-in of those `given`, and how many they
    are. A student whom no LMS named has a folder in it; the same reports give the same bytes."""
    newest = {hand_in.student: hand_in for hand_in in given}
    places = {student: folder / safe_name(student) / "report.html" for student in sorted(newest)}
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for student, report in places.items():
            if report.is_file():
                name = (lms_prefix(newest[student].path) or f"{safe_name(student)}/") + report.name
                archive.writestr(zipfile.ZipInfo(name), report.read_bytes(), zipfile.ZIP_DEFLATED)
    return stream.getvalue(), len(archive.namelist())
