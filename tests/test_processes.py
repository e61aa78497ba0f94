"""Child processes end when they are told to, with all that they started, and never outlive whoever started them."""

import gc
import os
import signal
import socket
from pathlib import Path

import pytest

from gradekit.processes import ChildProcess, Command, clean_environment

from .patience import GUARD, eventually

pytestmark = pytest.mark.usefixtures("real_start")

SLEEPS = """
import os, signal, sys, time
if os.fork() == 0:
    os.write(int(sys.argv[1]), str(os.getpid()).encode())
    time.sleep(600)
signal.signal(signal.SIGTERM, lambda *_: os._exit(7))
os.write(int(sys.argv[1]), b" ready")
while True:
    time.sleep(0.1)  # a signal that comes just before a sleep is handled after it
"""


def started(folder: Path, **ending: float) -> tuple[ChildProcess, int]:
    """A process that sleeps, and the id of another that it has started."""
    (folder / "sleeper.py").write_text(SLEEPS)
    ours, theirs = socket.socketpair()
    with theirs, ours:
        environment = {"PYTHONPATH": str(folder)}
        command = Command("sleeper", (str(theirs.fileno()),), environment, folder, (theirs.fileno(),))
        process = ChildProcess(command, **ending)  # type: ignore[arg-type]
        said = b""
        while b"ready" not in said or not said.replace(b" ready", b""):
            said += ours.recv(100)
    return process, int(said.replace(b" ready", b""))


def is_gone(pid: int) -> bool:
    try:
        return ") Z " in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True


def test_ending_a_process_ends_what_it_started(tmp_path: Path) -> None:
    process, grandchild = started(tmp_path)
    assert process.is_alive()
    assert process.end() == -signal.SIGKILL == process.end()
    assert not process.is_alive() and eventually(lambda: is_gone(grandchild))


def test_a_process_that_may_tidy_up_is_told_first(tmp_path: Path) -> None:
    process, grandchild = started(tmp_path, patience=GUARD, terminate=True)
    assert process.end() == 7
    assert eventually(lambda: is_gone(grandchild))


def test_a_process_that_nobody_holds_any_more_is_ended(tmp_path: Path) -> None:
    process, grandchild = started(tmp_path)
    pid = process.pid
    del process
    gc.collect()
    assert is_gone(pid) and eventually(lambda: is_gone(grandchild))


def test_a_fork_of_the_grader_does_not_end_its_processes(tmp_path: Path) -> None:
    process, _ = started(tmp_path)
    pid = os.fork()
    if pid == 0:
        process.end()
        os._exit(0)
    os.waitpid(pid, 0)
    assert process.is_alive()
    process.end()


def test_what_has_ended_is_not_alive_and_keeps_its_exit_code(tmp_path: Path) -> None:
    (tmp_path / "three.py").write_text("raise SystemExit(3)")
    process = ChildProcess(Command("three", (), {"PYTHONPATH": str(tmp_path)}))
    assert eventually(lambda: not process.is_alive())
    assert process.wait(GUARD) and process.end() == 3


def test_hostile_data_meets_nothing_of_the_users_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADEKIT_TEST_SECRET", "s")
    assert "GRADEKIT_TEST_SECRET" not in clean_environment("/tmp")
