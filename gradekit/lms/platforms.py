"""The contract of each LMS: where the submission lies, where the result goes, in what
form, and how long it may take."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradekit.batch.feedback import visible
from gradekit.credit import PendingPolicy
from gradekit.report import classroom, gradescope, junit, page, prairielearn, printed, terminal
from gradekit.report import record as records
from gradekit.report.grade import grade
from gradekit.report.story import summary

Record = Mapping[str, Any]

Deliver = Callable[[Path, Record, bool, PendingPolicy], None]
"""Hands a record over, under a root folder; says whether it is the last one, and what unmeasured points count."""


@dataclass(frozen=True)
class Platform:
    """One LMS. Its paths are under a root folder: "/", but in tests.

    `submission` is the folder with what the student handed in (None: the current one), `seconds` what the LMS gives a
    grading unless it is told otherwise. What hidden tests found is Gradescope's to show when it is time; the others
    never get to see it. A grading exits with 0 whatever its result, since to an LMS any other code says that there is
    none; but where the platform `tells_by_exit_code`, as `gradekit check` does. A package that `is_read_by_students`
    holds neither hidden tests nor a secret seed.
    """

    name: str
    submission: str | None
    seconds: int
    deliver: Deliver
    tells_by_exit_code: bool = False
    is_read_by_students: bool = False

    def folder(self, root: Path) -> Path:
        """Where the submission lies."""
        return root / self.submission if self.submission else Path.cwd()


def _gradescope(root: Path, record: Record, last: bool, pending: PendingPolicy) -> None:
    _json(root / "autograder/results/results.json", gradescope.render(record, pending))


def _prairielearn(root: Path, record: Record, last: bool, pending: PendingPolicy) -> None:
    _json(root / "grade/results/results.json", prairielearn.render(visible(record, False), pending))


def _json(path: Path, data: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    records.write(json.dumps(data, allow_nan=False, indent=1) + "\n", path)


def _printed(render: Callable[[Record, PendingPolicy], str]) -> Deliver:
    """Standard output is the result, so nothing is said before the end."""

    def deliver(root: Path, record: Record, last: bool, pending: PendingPolicy) -> None:
        if last:
            print(render(visible(record, False), pending), end="", flush=True)

    return deliver


def _vpl(record: Record, pending: PendingPolicy) -> str:
    """The grade, of the points that the activity has."""
    return printed.vpl(record, pending, float(os.environ.get("GRADEKIT_GRADE_MAX") or 100))


def _classroom(root: Path, record: Record, last: bool, pending: PendingPolicy) -> None:
    """An output of the workflow's step: of two lines in its file, the later counts."""
    record = visible(record, False)
    output = os.environ.get("GITHUB_OUTPUT")
    if output:
        with open(output, "a", encoding="utf-8") as stream:
            stream.write(f"result={classroom.encoded(record, pending)}\n")
    if last:
        place = os.environ.get("GITHUB_STEP_SUMMARY")
        if place:
            with open(place, "a", encoding="utf-8") as stream:
                stream.write(classroom.step_summary(record, pending))
        print(*_outcomes(record, pending), *classroom.line_errors(record), sep="\n", flush=True)


def _outcomes(record: Record, pending: PendingPolicy) -> list[str]:
    """What the workflow's log shows."""
    tests = classroom.render(record, pending)["tests"]
    return [f"{test['status']:<5} {test['score']:g}  {test['name']}" for test in tests]


def _oci(root: Path, record: Record, last: bool, pending: PendingPolicy) -> None:
    """The whole record for staff, and on standard output what a student may read."""
    place = root / "results/report.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    records.write(records.dumps(record), place)
    if last:
        print(terminal.render(visible(record, False)), end="", flush=True)


def _codegrade(root: Path, record: Record, last: bool, pending: PendingPolicy) -> None:
    """Structured output has a descriptor of its own, which the script opens."""
    if last:
        with os.fdopen(os.dup(STRUCTURED), "w", encoding="utf-8") as stream:
            stream.write(printed.codegrade(visible(record, False), pending))


def _gitlab(root: Path, record: Record, last: bool, pending: PendingPolicy) -> None:
    """GitLab shows the JUnit file beside a merge request, and keeps the page."""
    record = visible(record, False)
    records.write(junit.render(record), Path("gradekit-report.xml"))
    if last:
        records.write(page.render(record), Path("gradekit-report.html"))
        print(summary(record, grade(record, pending)), flush=True)


STRUCTURED = 3
"""The descriptor of CodeGrade's structured output."""

PLATFORMS = {
    platform.name: platform
    for platform in (
        Platform("gradescope", "autograder/submission", 600, _gradescope),
        Platform("prairielearn", "grade/student", 600, _prairielearn),
        Platform("autolab", None, 600, _printed(printed.autolab)),
        Platform("classroom", None, 600, _classroom, is_read_by_students=True),
        Platform("gitlab", None, 600, _gitlab, tells_by_exit_code=True, is_read_by_students=True),
        Platform("vpl", None, 240, _printed(_vpl)),
        Platform("coderunner", None, 120, _printed(printed.coderunner)),
        Platform("codegrade", None, 600, _codegrade),
        Platform("oci", "submission", 3600, _oci, tells_by_exit_code=True),
    )
}
