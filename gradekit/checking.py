"""Checks one submission from a path to a report, and answers with a report whatever happens on the way.

Only a wrong command (no such file, assignment or check) raises. A submission that cannot be read is a rejected report,
and an error of gradekit's own is a fault report, which shows no traceback and costs no points.
"""

import contextlib
import tempfile
import traceback
from enum import IntEnum
from pathlib import Path
from typing import Any

from gradekit import reuse
from gradekit.assignment import AssignmentError, UsageError, of_path
from gradekit.findings import Outcome, Report, Status
from gradekit.request import GradingOptions, GradingRequest
from gradekit.sandbox import Unavailable, host
from gradekit.submission import NoSuchSubmission, SubmissionError, locate
from gradekit.submission import read as read_submission
from gradekit.versions import environment


class ExitCode(IntEnum):
    """What a process says with its end; wrong usage is 2, as click says it."""

    PASSED = 0  # all that was measured
    FAILED = 1  # something, or the submission was rejected
    FAULT = 3  # of the grader


def check(path: Path, given_id: str | None = None, options: GradingOptions | None = None, **watching: Any) -> Report:
    """The report on the submission at `path`; `watching` are the callbacks of `gradekit.plugin.grade`. Nothing is run
    below the isolation that `options` ask for. Raises UsageError for no such file, assignment, GPU or check."""
    try:
        assignment = of_path(path, given_id)
        if not path.exists():
            locate(path)  # raises, before torch is imported
    except NoSuchSubmission as error:
        raise UsageError(str(error)) from None
    except SubmissionError as error:
        return rejected(path, error)
    options = options or GradingOptions()
    level = None if assignment.is_quiz else options.isolation
    try:
        with contextlib.nullcontext() if level is None else host.requiring(level):
            return _graded(GradingRequest(assignment, path, options), watching)
    except Unavailable as error:
        raise UsageError(str(error)) from None


def unreadable(path: Path, given_id: str | None = None) -> Report | None:
    """The report on a submission that Python cannot read; None for any other. Needs neither torch nor Triton."""
    try:
        assignment = of_path(path, given_id)
        if not assignment.is_quiz:
            read_submission(path, entry=assignment.entry)
    except (AssignmentError, NoSuchSubmission):
        return None
    except SubmissionError as error:
        return rejected(path, error)
    return None


def _graded(request: GradingRequest, watching: dict[str, Any]) -> Report:
    try:
        if not (request.assignment.is_quiz or reuse.is_keeping()):
            host.server()  # first: the submission's process imports torch and Triton while this one imports the rest
        from gradekit.plugin import NoSuchCheck, NoSuchDevice, grade
    except Exception as error:  # noqa: BLE001  # a broken installation: say so, do not show it
        return fault(request.assignment.id, request.path, error)
    try:
        return grade(request, **watching)
    except (NoSuchSubmission, NoSuchCheck, NoSuchDevice) as error:
        raise UsageError(str(error)) from None
    except Exception as error:  # noqa: BLE001  # whatever it is, it is the grader's own
        return fault(request.assignment.id, request.path, error)


def rejected(path: Path, error: SubmissionError) -> Report:
    """The report on a submission that cannot be read, so that not even its assignment is known."""
    return unchecked("", str(path), Status.REJECTED, error.message, cause=error.cause, source=error.source)


def fault(assignment: str, path: Path, error: Exception) -> Report:
    """The report on a run in which gradekit itself failed with `error`; its message says where the details are."""
    return unchecked(assignment, str(path), Status.FAULT, f"{type(error).__name__}: {error}\n{save_traceback(error)}")


def unchecked(assignment: str, path: str, status: Status, message: str, **more: Any) -> Report:
    """The report on a submission that no check was tried on; `more` are other fields of Report."""
    return Report(assignment, status, {"path": path, "sha256": ""}, (), environment(), 0.0, message, **more)


def save_traceback(error: BaseException) -> str:
    """Write the whole traceback of `error` to a file, and say where: for the people who maintain gradekit."""
    text = "".join(traceback.format_exception(error))
    try:
        descriptor, path = tempfile.mkstemp(prefix="gradekit-fault-", suffix=".txt")
        with open(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError as failed:
        return f"The details could not be written: {failed}."
    return f"The details are in {path}; please send that file to your instructor."


def exit_code(report: Report) -> ExitCode:
    """What a process that made `report` exits with; a fault is never hidden behind a failed check."""
    outcomes = {check.outcome for check in report.checks}
    if report.status is Status.FAULT or Outcome.FAULT in outcomes:
        return ExitCode.FAULT
    if report.status is Status.REJECTED or any(check.lost for check in report.checks):
        return ExitCode.FAILED
    return ExitCode.PASSED
