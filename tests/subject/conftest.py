"""Each test begins with nothing that another has run."""

import pytest

from gradekit.subject import runs, soundness
from gradekit.subject.shared import Shelf


@pytest.fixture(autouse=True)
def nothing_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "shelf", Shelf())
    monkeypatch.setattr(soundness, "_accepted", {})
