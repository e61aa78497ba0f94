"""What is claimed of submissions is claimed of them on any machine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gradekit.plugin.profiles import PROFILES


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a slow machine, as many examples are drawn as on a fast one, and those that fail shrunk as far."""
    for name, profile in PROFILES.items():
        patient = replace(profile, seconds=10 * profile.seconds, shrink_seconds=10 * profile.shrink_seconds)
        monkeypatch.setitem(PROFILES, name, patient)
