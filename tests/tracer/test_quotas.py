"""What a submission has over all its processes and files is added up, and whoever has too much is ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradekit.tracer import children
from tests.patience import eventually

HOG = """
import mmap, os, sys, threading, time
os.setsid()
kept = mmap.mmap(-1, 64 << 20) if sys.argv[1] == "shared" else bytearray(1)
def start():
    if os.fork() == 0:
        own = bytearray(b"x") * (40 << 20) if sys.argv[1] == "own" else None
        if own is None: kept.write(b"x" * (64 << 20))
        time.sleep(600)
for _ in range(2): start()
thread = threading.Thread(target=start); thread.start(); thread.join()
time.sleep(600)
"""
SERVER = "import subprocess, sys\nsubprocess.run([sys.executable, '-S', '-c', sys.argv[1], sys.argv[2]])"


@pytest.fixture(params=["own", "shared"])
def server(request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[bytes]]:
    """A process with one submission, which has started three more: 120 MiB of their own, or 192 that they share."""
    with subprocess.Popen([sys.executable, "-S", "-W", "ignore", "-c", SERVER, HOG, request.param]) as started:
        yield started
        for process in children._below(started.pid):
            children.end_process(process)
        started.kill()


def test_the_memory_of_all_processes_is_added_up(server: subprocess.Popen[bytes]) -> None:
    """Also of those that a thread started, and whoever has too much is ended with all that it started"""
    assert eventually(lambda: len(children.greedy(server.pid, 100 << 20)) == 4)
    found = children.greedy(server.pid, 100 << 20)
    assert len({process.session for process in found}) == 1
    assert children.greedy(server.pid, 1 << 30) == []
    for process in found:
        children.end_process(process)
    assert eventually(lambda: server.poll() is not None)


def test_a_number_that_means_another_process_by_now_is_left_alone() -> None:
    with subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"]) as other:
        children.end_process(children.Process(other.pid, other.pid + 1, 0))
        other.terminate()
        assert other.wait() == -signal.SIGTERM  # SIGKILL, had it been sent, would have come first


def test_files_are_added_up(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / "a" / str(number)).mkdir(parents=True)
        (tmp_path / "a" / str(number) / "b").write_bytes(b"x" * (1 << 20))
    assert children.too_much(str(tmp_path), 2 << 20) and not children.too_much(str(tmp_path), 4 << 20)
    assert children.too_much(str(tmp_path), most_files=6) and not children.too_much(str(tmp_path), most_files=7)


def test_a_folder_that_is_gone_has_not_too_much(tmp_path: Path) -> None:
    assert not children.too_much(str(tmp_path / "gone"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root looks into every folder")
def test_a_folder_that_nobody_may_look_into_is_too_much(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir(mode=0)
    assert children.too_much(str(tmp_path))
