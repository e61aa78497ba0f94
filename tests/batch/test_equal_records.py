"""The same submission gets the same record from `check`, in a class, and on a machine that has hardly any time for it."""

from __future__ import annotations

import base64
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gradekit.assignment import get
from gradekit.batch.digests import release
from gradekit.batch.grader import Grader, GradingJob
from gradekit.checking import check
from gradekit.report.record import to_dict
from gradekit.request import GradingOptions
from tests.batch.clusters import BROKEN, RAISES, RIGHT, WRONG, assignments
from tests.patience import GUARD

UNMASKED = RIGHT.replace(", i < n)", ")")
BLIND = RIGHT.replace("tl.load(x_ptr + i, i < n)", "tl.load(x_ptr + i, i < n - 3)")
SLEEPY = RIGHT.replace("    out =", "    import time; time.sleep(0.3)\n    out =")
OPTIONS = GradingOptions(hidden=True, profile="quick", device="cpu")


@contextmanager
def hardly_running(pid: int) -> Iterator[None]:
    """While open, the process stands still for nine tenths of the time."""
    over = threading.Event()

    def throttle() -> None:
        while not over.is_set():
            os.kill(pid, signal.SIGSTOP)
            time.sleep(0.09)
            os.kill(pid, signal.SIGCONT)
            over.wait(0.01)

    thread = threading.Thread(target=throttle)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def comparable(record: Any) -> Any:
    """The record without times and the names of machines."""
    left_out = {"seconds", "environment"}
    return {name: value for name, value in record.items() if name not in left_out}


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return assignments(tmp_path_factory.mktemp("equal"))


@pytest.fixture(scope="module")
def grader(course: Path) -> Iterator[Grader]:
    """One that has graded others before."""
    made = Grader()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRADEKIT_ASSIGNMENTS", str(course))
        for text in (RIGHT, WRONG, RAISES):
            made.grade(job(text), GUARD)
    yield made
    made.close()


def job(text: str) -> GradingJob:
    content = base64.b64encode(text.encode()).decode()
    return GradingJob("double", release(get("double")), OPTIONS.to_json(), "submission.py", content)


@pytest.mark.parametrize("text", [RIGHT, WRONG, UNMASKED, BLIND, SLEEPY, RAISES, BROKEN], ids=range(7))
def test_check_a_class_and_a_throttled_grader_make_the_same_record(
    course: Path, grader: Grader, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRADEKIT_ASSIGNMENTS", str(course))
    monkeypatch.chdir(tmp_path)
    Path("submission.py").write_text(text)
    alone = comparable(to_dict(check(Path("submission.py"), "double", OPTIONS)))
    assert comparable(grader.grade(job(text), GUARD).record) == alone
    assert grader._process is not None
    with hardly_running(grader._process.pid):
        assert comparable(grader.grade(job(text), 10 * GUARD).record) == alone
    assert alone["checks"] and alone["status"] in ("graded", "rejected")
