"""Hooks that other plugins may implement to watch a grading run while it works. All are optional."""

from __future__ import annotations

import pytest

from gradekit.findings import Check, Report


@pytest.hookspec
def pytest_gradekit_begin(title: str, done: int, total: int) -> None:
    """A check begins: its `title`, after `done` of `total` checks."""


@pytest.hookspec
def pytest_gradekit_check(check: Check, done: int, total: int) -> None:
    """A check has ended: the `done`-th of `total`."""


@pytest.hookspec
def pytest_gradekit_report(report: Report) -> None:
    """The run is over, and this is its record."""
