"""`grade`: a grading request goes in, a report comes out. May be called many times in one process."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import pytest

from gradekit.assignment import Assignment
from gradekit.findings import Check, Report
from gradekit.plugin.run_state import GradingRun
from gradekit.quiz.grading import grade as grade_quiz
from gradekit.quiz.grading import selected
from gradekit.request import GradingRequest
from gradekit.reuse import per_submission, relied_on

if TYPE_CHECKING:
    from gradekit.plugin.check_results import CheckEvidence
    from gradekit.plugin.lifecycle import GradingPlugin
    from gradekit.subject.subject import Subject

OnProgress = Callable[[str, int, int], None]
"""Called with the title of the check that begins, how many are done, and how many there are."""

OnSubject = Callable[["Subject"], None]
"""Called when all checks have run, with the submission as they saw it."""

OnEvidence = Callable[[Check, "CheckEvidence", BaseException | None], None]
"""Called when a check has ended, with what its outcome rests on and the error that it ended with, if any."""


OnFailing = Callable[[str, str], None]
"""Called, perhaps from another thread, with the title of a check that fails and a message; its record comes later."""


class NoSuchCheck(LookupError):
    """No check's name matches the expression; `names` are those that there are."""

    def __init__(self, keyword: str, names: list[str]) -> None:
        super().__init__(f'no check matches "{keyword}"; there are {", ".join(names)}')
        self.names = names


@dataclass(eq=False)
class Listener:
    """Watches one run of pytest for the caller of `grade`, and keeps the names of the checks that were left out."""

    on_progress: OnProgress | None
    on_subject: OnSubject | None
    on_evidence: OnEvidence | None
    left_out: list[str] = field(default_factory=list)
    _streams: tuple[TextIO, TextIO] = field(default_factory=lambda: (sys.stdout, sys.stderr))

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Have failures formatted as one line each: nobody reads how pytest shows them."""
        config.option.tbstyle = "line"

    def pytest_gradekit_begin(self, title: str, done: int, total: int) -> None:
        """Pass on that a check begins; what the caller prints then goes to the caller's own streams."""
        if self.on_progress is not None:
            with contextlib.redirect_stdout(self._streams[0]), contextlib.redirect_stderr(self._streams[1]):
                self.on_progress(title, done, total)

    def pytest_gradekit_subject(self, subject: Subject) -> None:
        """Pass on the submission as the checks saw it."""
        if self.on_subject is not None:
            self.on_subject(subject)

    def pytest_gradekit_evidence(self, check: Check, evidence: CheckEvidence, error: BaseException | None) -> None:
        """Pass on what the outcome of a check rests on."""
        if self.on_evidence is not None:
            self.on_evidence(check, evidence, error)

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        """Note which checks are not run."""
        self.left_out += [item.name for item in items]


def grade(
    request: GradingRequest, *, on_progress: OnProgress | None = None, on_subject: OnSubject | None = None,
    on_evidence: OnEvidence | None = None, on_failing: OnFailing | None = None, first: Collection[str] = (),
) -> Report:  # fmt: skip
    """The report on the submission of `request`, by its assignment's tests. `on_failing` hears of a check as soon as
    an example of it fails; of those of the checks `first` that fail, before it is their turn.

    Raises:
        NoSuchSubmission: there is nothing at the submission's path.
        NoSuchCheck: the keyword matches no check.
        NoSuchDevice: there is no such GPU.
    """
    keyword = request.options.keyword
    if request.assignment.is_quiz:
        report = grade_quiz(request.assignment, request.path, hidden=request.options.hidden)
        return selected(report, keyword, NoSuchCheck) if keyword else report
    relied_on.update(filter(None, (request.assignment.folder, request.assignment.solutions)))
    listener = Listener(on_progress, on_subject, on_evidence)
    run = GradingRun(request, on_failing=on_failing)
    with run.opened():
        from gradekit.plugin.check_workers import FirstLook
        from gradekit.plugin.lifecycle import GradingPlugin  # imports torch, as the submission's process does by now

        found, output = _run_pytest(GradingPlugin(run, FirstLook(run, first)), listener)
    if keyword and listener.left_out and not (run.items or run.faults):
        raise NoSuchCheck(keyword, listener.left_out)
    if found is None or not found.checks:  # the grader's fault, whatever pytest called it
        run.faults = run.faults or [f"The tests could not be run. {output.strip()[-2000:]}"]
        from gradekit.plugin.check_results import report_of

        return report_of(run)
    return found


def _run_pytest(plugin: GradingPlugin, listener: Listener) -> tuple[Report | None, str]:
    """The report of a run, None where it broke off before it began; and what pytest printed."""
    request, output = plugin.run.request, io.StringIO()
    arguments = [*_tests(request.assignment, request.options.hidden), *_isolated(request.assignment.folder)]
    arguments += ["-k", request.options.keyword] if request.options.keyword else []
    arguments += ["--exitfirst"] if request.options.stop else []
    with per_submission(), _process_restored(), contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        pytest.main(arguments, plugins=[plugin, listener])
    return plugin.report, output.getvalue()


def _tests(assignment: Assignment, hidden: bool) -> list[str]:
    more = assignment.solutions / f"test_{assignment.id}_hidden.py" if assignment.solutions else None
    return [str(assignment.tests)] + ([str(more)] if hidden and more and more.is_file() else [])


def _isolated(folder: Path) -> list[str]:
    """Options that keep the configuration, conftest files and plugins of the user's folder out of the grading."""
    disabled = (
        "cacheprovider", "terminal", "stepwise", "doctest", "junitxml", "pastebin", "faulthandler",
        "unraisableexception", "threadexception", "logging", "debugging", "setuponly", "setupplan", "legacypath",
    )  # fmt: skip
    return [
        f"--config-file={os.devnull}", f"--rootdir={folder}", f"--confcutdir={folder}", "--import-mode=importlib",
        "--disable-plugin-autoload", "-p", "gradekit.plugin", "--capture=no", "--strict-markers",
        *(word for name in disabled for word in ("-p", f"no:{name}")),
    ]  # fmt: skip


@contextlib.contextmanager
def _process_restored() -> Iterator[None]:
    """Leave the process as it was: the environment's options for pytest out, test modules forgotten afterwards."""
    hidden = {name: os.environ.pop(name) for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS") if name in os.environ}
    before = set(sys.modules)
    try:
        yield
    finally:
        os.environ.update(hidden)
        for name in set(sys.modules) - before:
            if Path(getattr(sys.modules[name], "__file__", None) or "").name.startswith("test_"):
                del sys.modules[name]
