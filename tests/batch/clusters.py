"""A cluster of real processes on this machine, and a small assignment with a speed check, for tests."""

import csv
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socketserver import BaseServer
from typing import TypeVar

from gradekit.batch.store import Store, StoredResult
from tests.beside import beside
from tests.hostile.world import free_port
from tests.patience import GUARD
from tests.plugin.samples import laid_out
from tests.texts import HEAD, ending
from tests.zygote import python_path

ROOT = Path(__file__).parents[2]
S = TypeVar("S", bound=BaseServer)

TESTS = beside(__file__)["tests"]

RIGHT = HEAD + """@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, 2 * tl.load(x_ptr + i, i < n), i < n)
""" + ending("x", "torch.empty_like(x)", "kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)", "double")
WRONG = RIGHT.replace("return out", "return out[:-1]")  # for which no mend is looked for, which would take its time
BROKEN = "def double(x:\n"
RAISES = RIGHT.replace("out = torch", "raise ValueError('no'); out = torch")
KINDS = (RIGHT, WRONG, BROKEN, RAISES)


def assignments(folder: Path) -> Path:
    """A folder of assignments with "double" in it."""
    return laid_out(folder, TESTS)


def hand_in(folder: Path, count: int) -> Path:
    """So many submissions of every kind, each another one."""
    for number in range(count):
        (folder / f"s{number:04d}").mkdir(parents=True, exist_ok=True)
        text = f"{KINDS[number % len(KINDS)]}\n# student {number}\n"
        (folder / f"s{number:04d}/submission.py").write_text(text)
    return folder


def environment(root: Path, mark: str) -> dict[str, str]:
    """Of every process here; `mark` tells them from others."""
    (root / "scratch").mkdir(exist_ok=True)
    (root / "scratch").chmod(0o711)
    return os.environ | {
        "PYTHONPATH": python_path(), "GRADEKIT_ASSIGNMENTS": str(root / "assignments"), "PYTHONWARNINGS": "ignore",
        "TMPDIR": str(root / "scratch"), "GRADEKIT_TEST_MARK": mark, "DASK_DISTRIBUTED__LOGGING__DISTRIBUTED": "error",
    }  # fmt: skip


def book(root: Path, out: str = "out/gradebook.csv") -> dict[str, dict[str, str]]:
    """The lines of a class's grade book, by student."""
    with (root / out).open(encoding="utf-8", newline="") as stream:
        return {line["student"]: line for line in csv.DictReader(stream)}


def histories(root: Path, url: str = "") -> dict[str, list[StoredResult]]:
    """All results of "double" in the store of a class, by the submission's digest."""
    store = Store(url or f"sqlite:///{root / 'out/class.db'}")
    return {one.digest: store.history("double", one.digest) for one in store.hand_ins("double")}


@contextmanager
def serving(server: S) -> Iterator[S]:
    """A server that answers meanwhile."""
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


class Cluster:
    """A scheduler, and machines that lend themselves to it."""

    def __init__(self, root: Path, mark: str, *options: str, protocol: str = "tcp") -> None:
        self.root, self.mark, self.options = root, mark, options
        self.port = free_port()
        self.address = f"{protocol}://127.0.0.1:{self.port}"
        self.scheduler: subprocess.Popen[bytes] | None = None
        self.machines: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start the scheduler, at its address."""
        self.scheduler = self._started(
            "-m", "distributed.cli.dask_scheduler", "--host", self.address.rpartition(":")[0], "--port", str(self.port),
            "--no-dashboard", *self.options,
        )  # fmt: skip

    def lend(self, *options: str) -> None:
        """Have one more machine lend itself."""
        self.machines.append(self._started("-m", "gradekit", "worker", self.address, *options))

    def kill_worker(self, number: int) -> bool:
        """Kill a machine's Dask worker, as a machine that loses power would; whether there was one."""
        children = [pid for pid in _children(self.machines[number].pid)]
        for pid in children:
            os.kill(pid, signal.SIGKILL)
        return bool(children)

    def stop(self) -> None:
        """End all."""
        for process in [*self.machines, self.scheduler]:
            if process is not None:
                process.terminate()
                try:
                    process.wait(GUARD)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()

    def _started(self, *words: str) -> subprocess.Popen[bytes]:
        log = (self.root / "cluster.log").open("ab")
        with log:
            return subprocess.Popen(
                [sys.executable, *words], cwd=self.root, env=environment(self.root, self.mark), stdin=subprocess.DEVNULL,
                stdout=log, stderr=log,
            )  # fmt: skip


def _children(parent: int) -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == parent:
                yield int(entry.name)
        except (OSError, ValueError):
            continue


@contextmanager
def running(root: Path, mark: str, *machines: tuple[str, ...]) -> Iterator[Cluster]:
    """A cluster with these machines, each with its options."""
    cluster = Cluster(root, mark)
    cluster.start()
    for options in machines:
        cluster.lend(*options)
    try:
        yield cluster
    finally:
        cluster.stop()


def grading(root: Path, mark: str, *options: str, id: str = "double", profile: str = "quick") -> subprocess.Popen[str]:
    """`gradekit grade` of what lies in root/in."""
    words = ["grade", str(root / "in"), "-a", id, "-o", str(root / "out"), "--resume", "--profile", profile]
    return subprocess.Popen(
        [sys.executable, "-m", "gradekit", *words, *options], cwd=root, env=environment(root, mark), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def wait_for(told: str, process: subprocess.Popen[str]) -> list[str]:
    """The lines that the process says, until one holds `told`."""
    lines: list[str] = []
    deadline = time.monotonic() + GUARD
    assert process.stdout is not None
    for line in process.stdout:
        lines.append(line)
        if told in line:
            return lines
        assert time.monotonic() < deadline, "".join(lines)
    raise AssertionError("".join(lines))


def alive(mark: str) -> dict[int, str]:
    """Processes that were started with this mark in their environment, and their command lines."""
    found = {}
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"GRADEKIT_TEST_MARK={mark}".encode() in (entry / "environ").read_bytes():
                found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
    return found
