"""How gradekit enters pytest: its options, its fixture, and, where a submission is named, a grading run.

Does nothing in a run that names no submission, for it is loaded in every pytest of the environment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gradekit.plugin import hookspecs, options
from gradekit.plugin.lifecycle import PLUGIN, GradingPlugin
from gradekit.plugin.run_state import GradingRun, NoSuchDevice
from gradekit.submission import NoSuchSubmission

if TYPE_CHECKING:
    from gradekit.subject.subject import Subject

_RUN = pytest.StashKey[GradingRun]()


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Let other plugins watch: see hookspecs.py."""
    pluginmanager.add_hookspecs(hookspecs)


def pytest_addoption(parser: pytest.Parser) -> None:
    """--submission and the --gradekit-... options."""
    options.add(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark; where the command line names a submission, start a grading run.

    Raises:
        pytest.UsageError: there is no such submission or GPU, or no one assignment to grade it by.
    """
    config.addinivalue_line("markers", "points(worth): what a check is worth; write it with gradekit.points")
    if PLUGIN in config.stash:  # the run was begun by `grade`
        return
    request = options.request(config)
    if request is None or config.option.collectonly:
        return
    try:
        run = config.stash[_RUN] = GradingRun(request).open()
    except NoSuchSubmission as error:
        raise pytest.UsageError(error.message) from None
    except NoSuchDevice as error:
        raise pytest.UsageError(str(error)) from None
    config.pluginmanager.register(GradingPlugin(run))


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the run that was started here."""
    if _RUN in config.stash:
        config.stash[_RUN].close()


@pytest.fixture(scope="session")
def submission(request: pytest.FixtureRequest) -> Subject:
    """The submission, to be called by the names of its functions: `submission.softmax(x)`."""
    plugin = request.config.stash.get(PLUGIN, None)
    if plugin is None:
        pytest.skip("no submission was given: pytest assignments/ID --submission PATH")
    assert plugin.run.subject is not None, "checks of a rejected submission do not run"
    return plugin.run.subject
