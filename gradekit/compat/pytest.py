"""What gradekit needs of pytest beyond its public names, for pytest 8.4 and later."""

import io
from typing import Any

import pytest

from gradekit.compat import relies_on

with relies_on("pytest"):
    from _pytest._io import TerminalWriter
    from _pytest.runner import runtestprotocol


def arguments(item: pytest.Function) -> dict[str, Any]:
    """The values of the fixtures that the test function of `item` takes as arguments, which have been set up."""
    with relies_on("pytest"):
        names = item._fixtureinfo.argnames
    return {name: item.funcargs[name] for name in names}


def format_comparisons_without_terminal(config: pytest.Config) -> None:
    """Where a run has no terminal: pytest before 9.1 asks the terminal's plugin for the writer that an assertion's
    comparison is formatted with, and fails with an assertion of its own where there is none."""
    if not config.pluginmanager.has_plugin("terminalreporter"):
        writer = TerminalWriter(io.StringIO())
        config.get_terminal_writer = lambda: writer  # type: ignore[method-assign]


def run_quietly(item: pytest.Item) -> None:
    """Runs a test by itself, without telling pytest's reporters of it."""
    with relies_on("pytest"):
        runtestprotocol(item, log=False, nextitem=None)


def report_passed(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Tells pytest that a test has passed, which was not run here, and that `nextitem` comes next."""
    with relies_on("pytest"):
        item.session._setupstate.teardown_exact(nextitem)
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    report = pytest.TestReport(item.nodeid, item.location, dict(item.keywords), "passed", None, "call")
    item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
