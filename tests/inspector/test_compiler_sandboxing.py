"""Who breaks the compiler by hostile TTIR commands one kernel's process, and finds nothing there: see captured.py."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gradekit.confine import landlock, seccomp
from gradekit.inspector import compile as compiling
from gradekit.inspector.compile import CompileJob, compile_all
from gradekit.program import Kernel
from tests.beside import beside
from tests.hostile.world import commanded, opened, read
from tests.patience import eventually
from tests.zygote import python_path

CASES = beside(__file__)

TOKEN = "the-secret-that-nobody-may-read"
pytestmark = pytest.mark.skipif(not (seccomp.available() and landlock.version()), reason="no seccomp or Landlock here")

ORDERS = CASES["orders"]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[dict[str, Any]]:
    opened(tmp_path)
    secret = tmp_path / "secret.txt"
    secret.write_text(TOKEN)
    tmp_path.chmod(0o777)
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield {"secret": str(secret), "folder": str(tmp_path), "port": server.getsockname()[1], "server": server,
               "grader": os.getpid(), "token": TOKEN,
               "solution": str(Path(__file__).parents[2] / "solutions" / "softmax" / "solution.py")}  # fmt: skip


def test_it_reaches_nothing_but_its_own_folder(world: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "MODULE", "tests.inspector.captured")
    jobs = [CompileJob(Kernel("k", order.format(**world)), 80) for order in ORDERS.values()]
    heard = {name: made.stages.get("ttir", made.error) for name, made in zip(ORDERS, compile_all(jobs), strict=True)}
    assert {name: text for name, text in heard.items() if "Error" not in text} == {}
    assert not [name for name, text in heard.items() if TOKEN in text]
    assert os.listdir(world["folder"]) == ["secret.txt"]
    with pytest.raises(BlockingIOError):
        world["server"].accept()


def test_its_own_work_it_can_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """It writes to its folder, and runs ptxas"""
    monkeypatch.setattr(compiling, "MODULE", "tests.inspector.captured")
    order = (
        "import glob, subprocess, triton\nopen('a', 'w').write('x')\n"
        "got = subprocess.run([glob.glob(triton.__path__[0] + '/backends/nvidia/bin/ptxas')[0], "
        "'--version']).returncode"
    )
    (made,) = compile_all([CompileJob(Kernel("k", order), 80)])
    assert made.stages["ttir"] == "0"


STARTER = """
import sys
from gradekit.inspector import compile as compiling
from gradekit.program import Kernel
compiling.MODULE = "tests.inspector.captured"
print("started", flush=True)
compiling.compile_all([compiling.CompileJob(Kernel("k", "import time; time.sleep(600)  # " + sys.argv[1]), 80)])
"""


def started_by(grader: int) -> list[str]:
    """The processes that were told of this grader."""
    lines = {pid: read(f"/proc/{pid}/cmdline").split("\0") for pid in commanded("inspector.captured")}
    return [pid for pid, words in lines.items() if words[-2:] == [str(grader), ""]]


def test_it_ends_with_the_grader(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": python_path(), "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", STARTER, "x"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as grader:
        assert grader.stdout is not None and grader.stdout.readline() == "started\n"
        assert eventually(lambda: len(started_by(grader.pid)) == 2)
        grader.kill()
    assert eventually(lambda: not started_by(grader.pid))
