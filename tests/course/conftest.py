"""What is claimed of submissions is claimed of them on any machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from gradekit import reuse
from gradekit.plugin.profiles import PROFILES


@pytest.fixture(scope="module", autouse=True)
def warm() -> Iterator[None]:
    """Submissions share what they may, as in a class, whose records are those of single checks (tests/test_reuse.py)."""
    with reuse.kept():
        yield


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a slow machine, as many examples are drawn as on a fast one, and those that fail shrunk as far."""
    for name, profile in PROFILES.items():
        patient = replace(profile, seconds=10 * profile.seconds, shrink_seconds=10 * profile.shrink_seconds)
        monkeypatch.setitem(PROFILES, name, patient)
