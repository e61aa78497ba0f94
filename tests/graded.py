"""One submission graded in this process, as tests ask for it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from gradekit.assignment import Assignment, get
from gradekit.findings import Check, Report
from gradekit.plugin.runner import grade as _grade
from gradekit.report.record import to_dict, validate
from gradekit.request import GradingOptions, GradingRequest
from gradekit.sandbox import Limits

USUAL = Limits()


def grade(
    assignment: Assignment, path: Path, *, on_progress: Callable[[str, int, int], None] | None = None,
    limits: Limits = USUAL, **options: Any,
) -> Report:  # fmt: skip
    """The report on the submission at `path`; `options` are those of GradingOptions."""
    return _grade(GradingRequest(assignment, path, GradingOptions(**options), limits=limits), on_progress=on_progress)


def graded(id: str, text: str, folder: Path, **options: Any) -> Report:
    """The report on a text that is written to `folder`."""
    (path := folder / "submission.py").write_text(text, encoding="utf-8")
    return grade(get(id), path, **options)


def record_of(id: str, text: str, folder: Path, **options: Any) -> dict[str, Any]:
    """The record of such a report; quickly and on the CPU unless `options` say otherwise."""
    return to_dict(graded(id, text, folder, **{"device": "cpu", "profile": "quick", **options}))


def failed_checks(id: str, text: str, folder: Path, **options: Any) -> list[dict[str, Any]]:
    """The checks of such a record that failed."""
    return [check for check in record_of(id, text, folder, **options)["checks"] if check["outcome"] == "failed"]


def by_id(report: Report) -> dict[str, Check]:
    """The checks of a report of which a valid record can be made."""
    validate(to_dict(report))
    return {check.id: check for check in report.checks}
