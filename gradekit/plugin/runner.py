"""`grade`: a grading request goes in, a report comes out. May be called many times in one process."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gradekit import quiz
from gradekit.assignment import Assignment
from gradekit.findings import Report
from gradekit.plugin.run_state import GradingRun, OnEvidence, OnFailing, OnProgress, OnSubject, nobody
from gradekit.request import GradingRequest
from gradekit.reuse import per_submission, relied_on, submitted

if TYPE_CHECKING:
    from gradekit.plugin.lifecycle import GradingPlugin


class NoSuchCheck(LookupError):
    """No check's name matches the expression; `names` are those that there are."""

    def __init__(self, keyword: str, names: list[str]) -> None:
        super().__init__(f'no check matches "{keyword}"; there are {", ".join(names)}')
        self.names = names


class WrongKeyword(NoSuchCheck):
    """What should select checks is no expression."""

    def __init__(self, keyword: str) -> None:
        LookupError.__init__(
            self, f'-k "{keyword}" cannot be read: write parts of names, and between them `and`, `or`, `not`'
        )


def grade(
    request: GradingRequest, *, on_progress: OnProgress | None = None, on_subject: OnSubject = nobody,
    on_evidence: OnEvidence = nobody, on_failing: OnFailing | None = None, first: Collection[str] = (),
) -> Report:  # fmt: skip
    """The report on the submission of `request`. `on_failing` hears of a check as soon as an example of it fails; of
    those `first`, before their turn. Raises NoSuchSubmission where there is nothing at the path, NoSuchCheck where the
    keyword is no expression or matches none, and NoSuchDevice where there is no such GPU."""
    keyword = request.options.keyword
    if request.assignment.is_quiz:
        report = quiz.grade(request.assignment, request.path, hidden=request.options.hidden)
        return quiz.selected(report, keyword, NoSuchCheck) if keyword else report
    relied_on.update(filter(None, (request.assignment.folder, request.assignment.solutions)))
    submitted.update((path := request.path.resolve(), path / "submission.py"))
    begins = _aloud(on_progress) if on_progress is not None else nobody
    run = GradingRun(request, on_progress=begins, on_subject=on_subject, on_evidence=on_evidence, on_failing=on_failing)
    with run.opened():
        from gradekit.plugin.lifecycle import GradingPlugin  # imports torch, as the submission's process does by now

        plugin = GradingPlugin(run, first)
        code, output = _run_pytest(plugin)
    if keyword and code == pytest.ExitCode.USAGE_ERROR:
        raise WrongKeyword(keyword)
    if keyword and plugin.left_out and not (run.items or run.faults):
        raise NoSuchCheck(keyword, plugin.left_out)
    found = plugin.report
    if found is None or not found.checks:  # the grader's fault, whatever pytest called it
        run.faults = run.faults or [f"The tests could not be run. {output.strip()[-2000:]}"]
        from gradekit.plugin.check_results import report_of

        return report_of(run)
    return found


def _aloud(tell: OnProgress) -> OnProgress:
    """`tell`, printing to the caller's streams: pytest captures what is printed meanwhile."""
    out, err = sys.stdout, sys.stderr

    def told(title: str, done: int, total: int) -> None:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            tell(title, done, total)

    return told


def _run_pytest(plugin: GradingPlugin) -> tuple[int, str]:
    request, output = plugin.run.request, io.StringIO()
    arguments = [*_tests(request.assignment, request.options.hidden), *_isolated(request.assignment.folder)]
    arguments += ["-k", request.options.keyword] if request.options.keyword else []
    arguments += ["--exitfirst"] if request.options.stop else []
    with per_submission(), _process_restored(), contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        code = pytest.main(arguments, plugins=[plugin])
    return code, output.getvalue()


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
