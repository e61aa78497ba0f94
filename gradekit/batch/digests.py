"""What a result is known by: the digest of a submission, and of an assignment's release."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from gradekit.assignment import Assignment
from gradekit.batch.intake import modules_beside
from gradekit.request import GradingOptions
from gradekit.submission import MAX_SOURCE_BYTES, archive, with_modules
from gradekit.versions import version

LARGEST = 32 << 20
"""Bytes of the largest file that is taken for a submission."""


class TooLarge(ValueError):
    """The file is no submission: it is larger than any."""


def content(path: Path) -> bytes:
    """The bytes of a submission's file; of a Python file, with the student's own modules that it imports.

    Raises:
        TooLarge: there are more than LARGEST.
        OSError: it cannot be read.
        SubmissionError: its files cannot be made one source.
    """
    if path.suffix.lower() == ".py" and path.stat().st_size <= MAX_SOURCE_BYTES:
        return with_modules(path, modules_beside(path))
    with path.open("rb") as stream:
        data = stream.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise TooLarge(f"{path.name} is larger than {LARGEST >> 20} MiB")
    return data


def digest(data: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def plain_name(assignment: Assignment, path: Path) -> str:
    """What a report calls the file: LMSes write names and numbers of students into theirs, and twins share a report."""
    stem = "answers" if assignment.is_quiz else "submission"
    suffix = next((s for s in archive.SUFFIXES if path.name.lower().endswith(s)), path.suffix.lower())
    return stem + suffix


def release(assignment: Assignment) -> str:
    """What the grading of a submission depends on besides itself: the tests, public and
    hidden, and gradekit's version."""
    hashed = hashlib.sha256((version("gradekit") or "unknown").encode())
    for file in _files(assignment):
        hashed.update(file.name.encode() + b"\0" + hashlib.sha256(file.read_bytes()).digest())
    return hashed.hexdigest()[:16]


USUAL = {"hidden": True}
"""How a class is graded unless staff say otherwise: with the hidden tests."""

NEUTRAL = {"seed", "secret_seed", "isolation", "jobs"}
"""The options that are kept beside a grading, or cannot change a result."""


def grading(release: str, options: GradingOptions) -> str:
    """What results are stored by: the release, and a digest of the options where they are not the usual ones.

    Two gradings with other hidden tests, profile or checks never share a result.
    """
    named = {name: value for name, value in options.to_json().items() if name not in NEUTRAL}
    return release if named == USUAL else f"{release}+{digest(json.dumps(named, sort_keys=True).encode())[:16]}"


def _files(assignment: Assignment) -> Iterable[Path]:
    yield from assignment.test_files
    if assignment.solutions is not None:
        yield from sorted(assignment.solutions.glob("test_*.py"))
