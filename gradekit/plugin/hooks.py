"""How gradekit enters pytest: its options, its fixture, and, where a submission is named, a grading run.

Does nothing in a run that names no submission, for it is loaded in every pytest of the environment.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gradekit.assignment import Assignment, AssignmentError, load
from gradekit.plugin.profiles import PROFILES
from gradekit.plugin.run_state import RUN, GradingRun, NoSuchDevice
from gradekit.request import GradingOptions, GradingRequest
from gradekit.submission import NoSuchSubmission

if TYPE_CHECKING:
    from gradekit.subject.subject import Subject


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options; all but --submission begin with --gradekit."""
    group = parser.getgroup("gradekit", "grading of Triton kernels")
    group.addoption("--submission", metavar="PATH", help="grade this .py file, notebook or folder")
    group.addoption("--gradekit-profile", choices=list(PROFILES), default="default", help="how many examples to try")


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark; where the command line names a submission, start a grading run. Raises pytest.UsageError where
    there is no such submission or GPU, or no one assignment to grade it by."""
    config.addinivalue_line("markers", "points(worth): what a check is worth; write it with gradekit.points")
    if RUN in config.stash:  # the run was begun by `grade`
        return
    request = _requested(config)
    if request is None or config.option.collectonly:
        return
    opened = contextlib.ExitStack()
    config.add_cleanup(opened.close)
    try:
        run = GradingRun(request)
        opened.enter_context(run.opened())
    except NoSuchSubmission as error:
        raise pytest.UsageError(error.message) from None
    except NoSuchDevice as error:
        raise pytest.UsageError(str(error)) from None
    from gradekit.plugin.lifecycle import GradingPlugin  # imports torch, as the submission's process does by now

    config.pluginmanager.register(GradingPlugin(run))


@pytest.fixture(scope="session")
def submission(request: pytest.FixtureRequest) -> Subject:
    """The submission, to be called by the names of its functions: `submission.softmax(x)`."""
    run = request.config.stash.get(RUN, None)
    if run is None:
        pytest.skip("no submission was given: pytest assignments/ID --submission PATH")
    assert run.subject is not None, "checks of a rejected submission do not run"
    return run.subject


def _requested(config: pytest.Config) -> GradingRequest | None:
    """What the command line asks for; None without a submission. Raises pytest.UsageError for no one assignment."""
    path = config.getoption("submission")
    if not path:
        return None
    options = GradingOptions(keyword=config.option.keyword or None, profile=config.getoption("gradekit_profile"))
    return GradingRequest(_assignment(config), Path(path), options)


def _assignment(config: pytest.Config) -> Assignment:
    paths = [Path(config.invocation_params.dir, argument.split("::", 1)[0]) for argument in config.args]
    candidates = [path if path.is_dir() else path.parent for path in paths]
    folders = list(dict.fromkeys(folder for folder in candidates if (folder / "assignment.toml").is_file()))
    if len(folders) != 1:
        found = f"got {', '.join(folder.name for folder in folders)}" if folders else "found none in the arguments"
        raise pytest.UsageError(f"--submission grades one assignment at a time ({found}): pytest assignments/ID ...")
    try:
        return load(folders[0].resolve())
    except AssignmentError as error:
        raise pytest.UsageError(str(error)) from None
