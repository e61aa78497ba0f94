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
from gradekit.report.grade import Grade, grade
from gradekit.report.plain_text import summary

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Platform:
    """One LMS. Its paths are under a root folder: "/", but in tests.

    `submission` is the folder with what the student handed in (None: the current one), `seconds` what the LMS gives a
    grading unless it is told otherwise. A record is `left` in files whenever there is one, also before it is the last;
    at the end, what is `said` goes to standard output. What hidden tests found is told to LMSes alone that show it when
    it is time, or to staff: where it `shows_hidden`. A grading exits with 0 whatever its result, since to an LMS any
    other code says that there is none; but where the platform `tells_by_exit_code`, as `gradekit check` does. A package
    that `is_read_by_students` holds neither hidden tests nor a secret seed.
    """

    name: str
    submission: str | None
    seconds: int
    said: Callable[[Grade], str] = lambda graded: ""
    left: Callable[[Path, Grade], None] = lambda root, graded: None
    shows_hidden: bool = False
    tells_by_exit_code: bool = False
    is_read_by_students: bool = False

    def folder(self, root: Path) -> Path:
        """Where the submission lies."""
        return root / self.submission if self.submission else Path.cwd()

    def deliver(self, root: Path, record: Record, last: bool, pending: PendingPolicy) -> None:
        """Hand a record over, under a root folder; `pending` says what unmeasured points count."""
        graded = grade(record if self.shows_hidden else visible(record, False), pending)
        self.left(root, graded)
        if last:
            print(self.said(graded), end="", flush=True)


def _gradescope(root: Path, graded: Grade) -> None:
    _json(root / "autograder/results/results.json", gradescope.render(graded))


def _prairielearn(root: Path, graded: Grade) -> None:
    _json(root / "grade/results/results.json", prairielearn.render(graded))


def _json(path: Path, data: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    records.write(json.dumps(data, allow_nan=False, indent=1) + "\n", path)


def _vpl(graded: Grade) -> str:
    """The grade, of the points that the activity has."""
    return printed.vpl(graded, float(os.environ.get("GRADEKIT_GRADE_MAX") or 100))


def _output(root: Path, graded: Grade) -> None:
    """An output of the workflow's step: of two lines in its file, the later counts."""
    if output := os.environ.get("GITHUB_OUTPUT"):
        with open(output, "a", encoding="utf-8") as stream:
            stream.write(f"result={classroom.encoded(graded)}\n")


def _log(graded: Grade) -> str:
    """What the workflow's log shows; its page gets the summary."""
    if place := os.environ.get("GITHUB_STEP_SUMMARY"):
        with open(place, "a", encoding="utf-8") as stream:
            stream.write(classroom.step_summary(graded))
    tests = classroom.render(graded)["tests"]
    outcomes = [f"{test['status']:<5} {test['score']:g}  {test['name']}" for test in tests]
    return "\n".join([*outcomes, *classroom.line_errors(graded.record), ""])


def _oci(root: Path, graded: Grade) -> None:
    _json(root / "results/report.json", graded.record)


def _codegrade(graded: Grade) -> str:
    """Structured output has a descriptor of its own, which the script opens."""
    with os.fdopen(os.dup(STRUCTURED), "w", encoding="utf-8") as stream:
        stream.write(printed.codegrade(graded))
    return ""


def _gitlab(root: Path, graded: Grade) -> None:
    """GitLab shows the JUnit file beside a merge request, and keeps the page."""
    records.write(junit.render(graded.record), Path("gradekit-report.xml"))
    records.write(page.render(graded.record), Path("gradekit-report.html"))


STRUCTURED = 3
"""The descriptor of CodeGrade's structured output."""

PLATFORMS = {
    platform.name: platform
    for platform in (
        Platform("gradescope", "autograder/submission", 600, left=_gradescope, shows_hidden=True),
        Platform("prairielearn", "grade/student", 600, left=_prairielearn),
        Platform("autolab", None, 600, printed.autolab),
        Platform("classroom", None, 600, _log, _output, is_read_by_students=True),
        Platform(
            "gitlab", None, 600, lambda graded: summary(graded) + "\n", _gitlab,
            tells_by_exit_code=True, is_read_by_students=True,
        ),
        Platform("vpl", None, 240, _vpl),
        Platform("coderunner", None, 120, printed.coderunner),
        Platform("codegrade", None, 600, _codegrade),
        Platform(
            "oci", "submission", 3600, lambda graded: terminal.render(visible(graded.record, False)), _oci,
            shows_hidden=True, tells_by_exit_code=True,
        ),
    )
}  # fmt: skip
