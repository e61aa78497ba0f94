"""`grade`: the whole of a grading run as one function call, which may be called many times in one process."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gradekit.assignment import Assignment
from gradekit.findings import Report, Status
from gradekit.plugin.grading import import_torch, the_device
from gradekit.quiz.grading import grade as quiz
from gradekit.quiz.grading import selected
from gradekit.reuse import per_submission
from gradekit.sandbox import prepare
from gradekit.submission import locate
from gradekit.versions import environment

if TYPE_CHECKING:
    from gradekit.subject.subject import Subject

Progress = Callable[[str, int, int], None]
"""Called with the title of the check that begins, how many are done, and how many there are."""


class NoSuchCheck(LookupError):
    """No check's name matches the expression; `names` are those that there are."""

    def __init__(self, keyword: str, names: list[str]) -> None:
        super().__init__(f'no check matches "{keyword}"; there are {", ".join(names)}')
        self.names = names


class Listener:
    """Watches one run of pytest: passes progress on, and keeps the report and the names of the checks left out."""

    def __init__(self, on_progress: Progress, on_subject: Callable[[Subject], None]) -> None:
        self.on_progress = on_progress
        self.on_subject = on_subject
        self.report: Report | None = None
        self.left_out: list[str] = []
        self._streams = sys.stdout, sys.stderr

    def pytest_gradekit_begin(self, title: str, done: int, total: int) -> None:
        """The caller may print: its own streams are given back meanwhile."""
        with contextlib.redirect_stdout(self._streams[0]), contextlib.redirect_stderr(self._streams[1]):
            self.on_progress(title, done, total)

    def pytest_gradekit_subject(self, subject: Subject) -> None:
        self.on_subject(subject)

    def pytest_gradekit_report(self, report: Report) -> None:
        self.report = report

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        self.left_out += [item.name for item in items]


def grade(
    assignment: Assignment,
    path: Path | str,
    *,
    keyword: str | None = None,
    seed: int | None = None,
    quick: bool = False,
    profile: str | None = None,
    mutant: str | None = None,
    hidden: bool = False,
    device: str = "auto",
    on_progress: Progress | None = None,
    on_subject: Callable[[Subject], None] | None = None,
    kind: str | None = None,
    programs: Path | None = None,
    swift: bool = False,
) -> Report:
    """The report of `assignment`'s tests on the submission at `path`.

    Args:
        keyword: run only the checks whose names match, as pytest's -k.
        seed: draw other examples than the release's.
        quick: few examples; short for `profile="quick"`.
        profile: quick, default or thorough.
        mutant: judge a trivial wrong result in place of the submission's (see gradekit.judge.mutants).
        hidden: run the staff's hidden tests too, where there are any.
        device: "auto" (a card if there is one), "cpu" (none), "cuda" or "cuda:1".
        on_progress: called whenever a check begins.
        on_subject: called when all checks have run, with the submission as they saw it.
        kind: run the checks of this kind alone.
        programs: what the calls became elsewhere (see gradekit.recorded): then nothing is read at `path`.
        swift: show the simplest example that fails, and look for no smaller one: for a process that grades many.

    Raises:
        NoSuchSubmission: there is nothing at `path`.
        NoSuchCheck: `keyword` matches nothing.
        NoSuchDevice: there is no such card.
    """
    if assignment.is_quiz:
        report = quiz(assignment, Path(path), hidden=hidden)
        return selected(report, keyword, NoSuchCheck) if keyword else report
    if programs is None:
        locate(Path(path), entry=assignment.entry)
        prepare()
    import_torch()
    the_device(device)
    arguments = [*_tests(assignment, hidden), *_isolated(assignment.folder), "--submission", str(path)]
    arguments += ["--gradekit-assignment", str(assignment.folder)]
    arguments += ["-k", keyword] if keyword else []
    arguments += [] if seed is None else [f"--gradekit-seed={seed}"]
    arguments += ["--gradekit-profile", "quick" if quick else profile or "default"]
    arguments += ["--gradekit-mutant", mutant] if mutant else []
    arguments += ["--gradekit-device", device]
    arguments += ["--gradekit-kind", kind] if kind else []
    arguments += ["--gradekit-programs", str(programs)] if programs else []
    arguments += ["--gradekit-swift"] if swift else []
    listener = Listener(on_progress or (lambda title, done, total: None), on_subject or (lambda subject: None))
    return _report(arguments, keyword, assignment, listener)


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


def _report(arguments: list[str], keyword: str | None, assignment: Assignment, listener: Listener) -> Report:
    output = io.StringIO()
    with per_submission(), _tidy(), contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        status = pytest.main(arguments, plugins=[listener])
    if status == pytest.ExitCode.NO_TESTS_COLLECTED and keyword and listener.left_out:
        raise NoSuchCheck(keyword, listener.left_out)
    if listener.report is not None and listener.report.checks:
        return listener.report
    return _without_checks(assignment, listener.report, output.getvalue())


def _without_checks(assignment: Assignment, report: Report | None, output: str) -> Report:
    """A run without any check is the grader's fault, whatever pytest called it."""
    message = report.message if report and report.message else f"The tests could not be run. {output.strip()[-2000:]}"
    facts: dict[str, Any] = report.submission if report else {"path": "", "sha256": ""}
    seconds = report.seconds if report else 0.0
    return Report(assignment.id, Status.FAULT, facts, (), environment(), seconds, message)


@contextlib.contextmanager
def _tidy() -> Iterator[None]:
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
