"""What a submission's time is counted for: its own code, and importing packages apart from it."""

import sys
import types
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

from gradekit.findings import Cause
from gradekit.sandbox import Limits, TraceError, Tracer
from gradekit.tracer import loading
from gradekit.tracer.child import TICKS, _Countdown
from gradekit.tracer.errors import TimeUp, refusal
from tests.tracer.styles import Text

OWN = "FRAME = sys._getframe()\n"
IMPORTING = "import slow_package.part\nFRAME = slow_package.part.FRAME\n"
AFTERWARDS = f"import slow_package.part\n{OWN}"


@pytest.fixture(autouse=True)
def _package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package with a part that keeps the frame in which it was imported."""
    (tmp_path / "slow_package").mkdir()
    (tmp_path / "slow_package/__init__.py").touch()
    (tmp_path / "slow_package/part.py").write_text("import sys\nFRAME = sys._getframe()\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in ("slow_package", "slow_package.part"):
        sys.modules.pop(name, None)


def frame_in(text: str) -> FrameType:
    """Where a submission of this text is when time is looked at."""
    module = types.ModuleType(loading.MODULE)
    exec(f"import sys\n{text}", vars(module))  # noqa: S102
    return module.FRAME


def ticks(countdown: _Countdown, frame: FrameType) -> int:
    """After how many ticks in that place time is up."""
    for count in range(1, 1000):
        try:
            countdown(0, frame)
        except TimeUp:
            return count
    return 0


@pytest.mark.parametrize(
    ("text", "counted"), [(OWN, TICKS), (AFTERWARDS, TICKS), (IMPORTING, 3 * TICKS)], ids=["own", "afterwards", "importing"]
)
def test_importing_a_package_has_time_of_its_own(text: str, counted: int) -> None:
    assert ticks(_Countdown(2), frame_in(text)) == counted


def test_what_was_imported_takes_nothing_from_the_time_of_own_code() -> None:
    countdown, importing = _Countdown(2), frame_in(IMPORTING)
    for _ in range(2 * TICKS):
        countdown(0, importing)
    assert ticks(countdown, frame_in(OWN)) == TICKS


def test_where_importing_takes_too_long_the_package_is_named_and_no_loop() -> None:
    countdown, importing = _Countdown(0), frame_in(IMPORTING)
    with pytest.raises(TimeUp) as caught:
        for _ in range(TICKS):
            countdown(0, importing)
    found = refusal(caught.value, "submission.py", "while the file was loaded")
    assert found.message == "Time is up while the file was loaded: importing slow_package.part takes too long on this machine."


def test_a_submission_that_imports_much_is_loaded() -> None:
    """What that takes is many times what its own statements may"""
    limits = Limits(import_seconds=0.1)
    with Tracer(Text("import torch._dynamo\ndef entry(x):\n    return x\n"), limits=limits) as tracer:
        assert tracer.load().functions == {"entry": (1, 1)}
    with Tracer(Text("while True: pass\n"), limits=limits) as tracer, pytest.raises(TraceError) as caught:
        tracer.load()
    assert caught.value.cause is Cause.TIMEOUT and caught.value.line == 1
