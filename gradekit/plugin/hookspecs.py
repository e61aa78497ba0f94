"""Hooks that other plugins may implement to watch a grading run while it works. All are optional."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gradekit.findings import Check, Report

if TYPE_CHECKING:
    from gradekit.plugin.check_evidence import CheckEvidence
    from gradekit.subject.subject import Subject


@pytest.hookspec
def pytest_gradekit_begin(title: str, done: int, total: int) -> None:
    """A check begins: its `title`, after `done` of `total` checks."""


@pytest.hookspec
def pytest_gradekit_check(check: Check, done: int, total: int) -> None:
    """A check has ended: the `done`-th of `total`."""


@pytest.hookspec
def pytest_gradekit_evidence(check: Check, evidence: CheckEvidence, error: BaseException | None) -> None:
    """A check has ended with `error` (None: it passed); `evidence` is what its outcome rests on."""


@pytest.hookspec
def pytest_gradekit_subject(subject: Subject) -> None:
    """All checks have run; what the submission's calls became can still be read."""


@pytest.hookspec
def pytest_gradekit_report(report: Report) -> None:
    """The run is over, and this is its record."""
