"""The contract of each LMS: where the submission lies, where the result goes, in what form, and its time limit."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradekit.batch.feedback import visible
from gradekit.credit import PendingPolicy
from gradekit.report import for_lms, junit, page, terminal
from gradekit.report import record as records
from gradekit.report.grade import Grade, grade
from gradekit.report.plain_text import summary

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Platform:
    """One LMS. Its paths are under a root folder: "/", but in tests. `submission` is the folder with what the student
    handed in (None: the current one), `seconds` the LMS's usual limit. A record is `left` in files whenever there is
    one; of the last, what is `said` goes to standard output. What hidden tests found is told where the LMS shows it
    when it is time, or to staff (`shows_hidden`). A grading exits with 0, since any other code says that there is none,
    unless `tells_by_exit_code`. What `is_read_by_students` holds neither hidden tests nor a secret seed."""

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


def _json(place: str, data: Callable[[Grade], Any]) -> Callable[[Path, Grade], None]:

    def leave(root: Path, graded: Grade) -> None:
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        records.write(json.dumps(data(graded), allow_nan=False, indent=1) + "\n", root / place)

    return leave


def _append(variable: str, text: str) -> None:
    if place := os.environ.get(variable):
        with open(place, "a", encoding="utf-8") as stream:
            stream.write(text)


def _log(graded: Grade) -> str:
    """What the workflow's log shows; its page gets the summary."""
    _append("GITHUB_STEP_SUMMARY", for_lms.step_summary(graded))
    tests = for_lms.classroom(graded)["tests"]
    outcomes = [f"{test['status']:<5} {test['score']:g}  {test['name']}" for test in tests]
    return "\n".join([*outcomes, *for_lms.line_errors(graded.record), ""])


def _codegrade(graded: Grade) -> str:
    """Structured output has a descriptor of its own, 3, which the script opens."""
    with os.fdopen(os.dup(3), "w", encoding="utf-8") as stream:
        stream.write(for_lms.codegrade(graded))
    return ""


def _gitlab(root: Path, graded: Grade) -> None:
    """GitLab shows the JUnit file beside a merge request, and keeps the page."""
    records.write(junit.render(graded.record), Path("gradekit-report.xml"))
    records.write(page.render(graded.record), Path("gradekit-report.html"))


PLATFORMS = {
    "gradescope": Platform(
        "autograder/submission", 600, left=_json("autograder/results/results.json", for_lms.gradescope),
        shows_hidden=True,
    ),
    "prairielearn": Platform("grade/student", 600, left=_json("grade/results/results.json", for_lms.prairielearn)),
    "autolab": Platform(None, 600, for_lms.autolab),
    "classroom": Platform(  # of two lines in the file of a step's output, the later counts
        None, 600, _log, lambda root, graded: _append("GITHUB_OUTPUT", f"result={for_lms.encoded(graded)}\n"),
        is_read_by_students=True,
    ),
    "gitlab": Platform(
        None, 600, lambda graded: summary(graded) + "\n", _gitlab, tells_by_exit_code=True, is_read_by_students=True
    ),
    "vpl": Platform(  # the grade is of the points that the activity has
        None, 240, lambda graded: for_lms.vpl(graded, float(os.environ.get("GRADEKIT_GRADE_MAX") or 100))
    ),
    "coderunner": Platform(None, 120, for_lms.coderunner),
    "codegrade": Platform(None, 600, _codegrade),
    "oci": Platform(
        "submission", 3600, lambda graded: terminal.render(visible(graded.record, False)),
        _json("results/report.json", lambda graded: graded.record), shows_hidden=True, tells_by_exit_code=True,
    ),
}  # fmt: skip
