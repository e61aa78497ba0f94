"""How gradekit enters pytest: its options, its fixture, and, where a submission is named, a grading run.

Does nothing in a run that names no submission, for it is loaded in every pytest of the environment.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

from gradekit.plugin import hookspecs, options
from gradekit.plugin.grading import NoSuchDevice, one_thread
from gradekit.plugin.profiles import hypothesis_profile
from gradekit.plugin.run import GRADING, Run
from gradekit.submission import NoSuchSubmission

if TYPE_CHECKING:
    from gradekit.subject.subject import Subject

_CLEANUP = pytest.StashKey[contextlib.ExitStack]()


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Let other plugins watch: see hookspecs.py."""
    pluginmanager.add_hookspecs(hookspecs)


def pytest_addoption(parser: pytest.Parser) -> None:
    """--submission and the --gradekit-... options."""
    options.add(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark; in a grading run, set the submission's process going at once.

    Raises:
        pytest.UsageError: there is no such submission or card, or no one assignment to grade it by.
    """
    config.addinivalue_line("markers", "points(worth): what a check is worth; write it with gradekit.points")
    grading = options.grading(config)
    if grading is None or config.option.collectonly:
        return
    cleanup = config.stash[_CLEANUP] = contextlib.ExitStack()
    cleanup.callback(grading.close)
    cleanup.enter_context(hypothesis_profile(grading.profile))
    try:
        grading.read()
    except NoSuchSubmission as error:
        raise pytest.UsageError(error.message) from None
    except NoSuchDevice as error:
        raise pytest.UsageError(str(error)) from None
    cleanup.enter_context(one_thread())
    config.stash[GRADING] = grading
    config.pluginmanager.register(Run(config, grading), "gradekit-run")


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the submission's process, and give Hypothesis back its settings."""
    if _CLEANUP in config.stash:
        config.stash[_CLEANUP].close()


@pytest.fixture(scope="session")
def submission(request: pytest.FixtureRequest) -> Subject:
    """The submission, to be called by the names of its functions: `submission.softmax(x)`."""
    grading = request.config.stash.get(GRADING, None)
    if grading is None:
        pytest.skip("no submission was given: pytest assignments/ID --submission PATH")
    assert grading.subject is not None, "checks of a rejected submission do not run"
    return grading.subject
