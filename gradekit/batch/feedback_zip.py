"""The feedback of an assignment as one zip, with the names that the LMS gave in its download: it knows them again.

Canvas takes it as "Submission Re-Upload", Moodle as "Upload multiple feedback files in a zip".
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from gradekit.batch.feedback import safe_name
from gradekit.batch.intake import HandIn, lms_prefix

REPORT = "report.html"
TIME = (2026, 1, 1, 0, 0, 0)
"""Of every member: the same reports give the same file."""


def entries(newest: Mapping[str, HandIn], feedback: Path) -> dict[str, Path]:
    """By name in the zip, the report of each student who has one; a student whom no LMS named has a folder."""
    found = {}
    for student, hand_in in sorted(newest.items()):
        report = feedback / safe_name(student) / REPORT
        if report.is_file():
            found[(lms_prefix(hand_in.path) or f"{safe_name(student)}/") + REPORT] = report
    return found


def zipped(files: Mapping[str, Path]) -> bytes:
    """The zip of these files."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in files.items():
            archive.writestr(zipfile.ZipInfo(name, TIME), path.read_bytes())
    return stream.getvalue()


def newest(given: Iterable[tuple[HandIn, str]]) -> dict[str, HandIn]:
    """The last hand-in of each student."""
    return {hand_in.student: hand_in for hand_in, _ in given}
