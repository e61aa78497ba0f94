"""One submission graded in this process, as tests ask for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from gradekit.assignment import Assignment
from gradekit.findings import Report
from gradekit.plugin.runner import grade as _grade
from gradekit.request import GradingOptions, GradingRequest
from gradekit.sandbox import Limits

USUAL = Limits()


def grade(
    assignment: Assignment, path: Path, *, on_progress: Callable[[str, int, int], None] | None = None,
    limits: Limits = USUAL, **options: Any,
) -> Report:  # fmt: skip
    """The report on the submission at `path`; `options` are those of GradingOptions."""
    return _grade(GradingRequest(assignment, path, GradingOptions(**options), limits=limits), on_progress=on_progress)
