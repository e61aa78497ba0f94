"""Each test begins with nothing that another has run."""

import pytest

from gradekit.shelf import Shelf
from gradekit.subject import shared, soundness


@pytest.fixture(autouse=True)
def nothing_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "runs", shared.Runs())
    monkeypatch.setattr(soundness, "_accepted", Shelf(100))
