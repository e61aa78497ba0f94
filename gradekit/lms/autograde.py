"""One unattended grading in an LMS's container: whatever the submission does, the LMS gets the record that it expects.

A record that says "did not finish" is delivered first; the grading then runs in a process of its own, which can be
killed at the time limit, and its record takes that one's place.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gradekit.assignment import Assignment, get
from gradekit.batch import keys
from gradekit.batch.grader import Grader, GraderFailed, Job
from gradekit.batch.intake import HandIn, Wanted, chosen
from gradekit.findings import Cause, Report, Status
from gradekit.lms.layout import Layout
from gradekit.report import record
from gradekit.versions import environment

MARGIN = 15
"""Seconds of the LMS's limit that are kept for ending and writing."""


def autograde(
    layout: Layout, id: str, *, root: Path = Path("/"), seconds: int | None = None, isolation: int | None = None
) -> Mapping[str, Any]:
    """Grade the submission in `layout`'s place with the assignment `id`, deliver the record, and answer with it.

    `seconds` is the LMS's limit where it is not the usual one; below the level `isolation`, nothing is run (see doctor).
    """
    limit = max((seconds or layout.seconds) - MARGIN, MARGIN)
    layout.deliver(root, unfinished(id, f"The grading did not finish in {limit} s."), False)
    found = _graded(layout.folder(root), id, limit, isolation)
    layout.deliver(root, found, True)
    return found


def unfinished(id: str, message: str) -> dict[str, Any]:
    """The record of a grading that gradekit could not bring to its end: a fault, and nobody's zero."""
    return _without_checks(id, Status.FAULT, f"{message} This is no result: please tell your instructor.", None)


def _graded(folder: Path, id: str, seconds: float, isolation: int | None) -> dict[str, Any]:
    try:
        assignment = get(id)
        hand_in = chosen(HandIn("", folder), [folder], Wanted.by(assignment))
        if hand_in.problem:
            return _without_checks(id, Status.REJECTED, _upper(hand_in.problem), Cause.UNREADABLE)
        return _in_a_process(_job(assignment, hand_in.path, isolation), seconds)
    except Exception as error:  # noqa: BLE001  # whatever it is, the LMS gets a record, and nobody a zero
        return unfinished(id, f"{type(error).__name__}: {error}")


def _in_a_process(job: Job, seconds: float) -> dict[str, Any]:
    grader = Grader()
    try:
        return grader.grade(job, seconds).record
    except GraderFailed as error:
        return unfinished(job.assignment, _upper(str(error)))
    finally:
        grader.close()


def _job(assignment: Assignment, path: Path, isolation: int | None) -> Job:
    content = base64.b64encode(keys.content(path)).decode()
    release = keys.release(assignment)
    return Job(assignment.id, path.name, content, release, assignment.seed, isolation=isolation)


def _without_checks(id: str, status: Status, message: str, cause: Cause | None) -> dict[str, Any]:
    facts = {"path": "", "sha256": ""}
    return record.to_dict(Report(id, status, facts, (), environment(), 0.0, message, cause))


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
