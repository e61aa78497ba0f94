"""Child processes of the grader: how each is started, and how it ends with all that it has started.

Each is a module run by this Python in a session of its own, so that one signal reaches everything below it; none
outlives this process or the object that stands for it. A `ForkedProcess` begins with all that this one knows.
"""

from __future__ import annotations

import abc
import contextlib
import gc
import importlib.util
import multiprocessing.connection
import os
import signal
import socket
import subprocess
import sys
import warnings
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from gradekit.confine import linux

START_SECONDS = 120.0  # how long a child may take to import torch and Triton on a cold disk, and to meet its card

END_SECONDS = 10.0  # how long the kernel may take to end a process that was killed: a driver may still be busy with it


forks: Callable[[Command], subprocess.Popen[bytes] | None] = lambda command: None
"""Where this process is a fork of one that can fork others: starts a command so, or gives None."""


@dataclass(frozen=True)
class Command:
    """`python -P -m module arguments...` in `folder` (None: the current one), with that `environment` and no other. It
    inherits `descriptors`, and `stdout` and `stderr` (None: this process's own), and nothing else that is open. One
    that `dies_with_parent` is killed with this process, however that ends."""

    module: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    folder: Path | None = None
    descriptors: tuple[int, ...] = ()
    stdout: int | None = subprocess.DEVNULL
    stderr: int | None = subprocess.DEVNULL
    dies_with_parent: bool = False

    def start(self) -> subprocess.Popen[bytes]:
        """The running process, in a session of its own. Raises OSError where it cannot be started."""
        return forks(self) or subprocess.Popen(
            [sys.executable, "-P", "-m", self.module, *self.arguments],
            pass_fds=self.descriptors,
            stdin=subprocess.DEVNULL,
            stdout=self.stdout,
            stderr=self.stderr,
            cwd=self.folder,
            env=dict(self.environment),
            start_new_session=True,
            preexec_fn=_die_with_parent if self.dies_with_parent else None,  # noqa: PLW1509  # no other thread is here
        )


def _die_with_parent() -> None:
    linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)


class Forked(subprocess.Popen[bytes], abc.ABC):
    """A command that another process has forked for this one, whose child it is not."""

    @abc.abstractmethod
    def is_running(self) -> bool:
        """Whether it has not ended."""


class ChildProcess:
    """A command (or a process that was started for it) that runs until it ends by itself, or `end` is called; `sock` is
    this side of a socket to it, if it has one.

    To end it, its socket is closed; where it can `terminate`, it is sent SIGTERM; after `patience` seconds it is killed
    with its whole process group. This happens, too, when nobody holds this object any more, and when the interpreter
    ends. Raises OSError where the command cannot be started.
    """

    def __init__(
        self, command: Command | subprocess.Popen[bytes], sock: socket.socket | None = None, *, patience: float = 0.0,
        terminate: bool = False,
    ) -> None:  # fmt: skip
        self.sock = sock
        self._popen = command.start() if isinstance(command, Command) else command
        self._finalizer = weakref.finalize(self, _end, self._popen, sock, os.getpid(), patience, terminate)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._popen.pid

    def is_alive(self) -> bool:
        """Whether it runs, and belongs to this process: a fork of this one has no part in it."""
        return self._finalizer.alive and _is_alive(self._popen)

    def wait(self, seconds: float) -> bool:
        """Waits until it has ended by itself, at most `seconds`; whether it has."""
        try:
            self._popen.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def end(self) -> int:
        """Ends it and all that it has started; its exit code as subprocess gives it, negative for a signal."""
        self._finalizer()
        return self._popen.returncode or 0


def _end(
    popen: subprocess.Popen[bytes], sock: socket.socket | None, owner: int, patience: float, terminate: bool
) -> None:
    """Ends a process; without the object that stands for it, so that the collector can call it."""
    if sock is not None:
        sock.close()
    if os.getpid() != owner:
        return
    if terminate:
        popen.terminate()
    if patience:
        with contextlib.suppress(subprocess.TimeoutExpired):
            popen.wait(patience)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(popen.pid, signal.SIGKILL)  # what it has started may have outlived it
    with contextlib.suppress(subprocess.TimeoutExpired):
        popen.wait(END_SECONDS)


class ForkedProcess:
    """A fork of this process that answers messages in their order, each with what `answer` gives for it. It ends with
    this object, with this process, or when `answer` raises. Raises OSError where this process cannot be forked."""

    def __init__(self, answer: Callable[[bytes], bytes]) -> None:
        ours, theirs = multiprocessing.Pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # libraries have threads that the fork does not need
            pid = os.fork()
        if pid == 0:
            ours.close()
            _answer_forever(theirs, answer)
        theirs.close()
        self._connection = ours
        self._finalizer = weakref.finalize(self, _end_fork, pid, ours, os.getpid())

    def ask(self, message: bytes) -> None:
        """Sends a message; it is answered once those before it are. Raises OSError where the fork has ended."""
        self._connection.send_bytes(message)

    def take(self, seconds: float) -> bytes:
        """The next answer. Raises EOFError or OSError where the fork has ended, or has not answered for so long."""
        if not self._connection.poll(seconds):
            raise TimeoutError("no answer")
        return self._connection.recv_bytes()

    def end(self) -> None:
        """Ends it."""
        self._finalizer()


def _answer_forever(connection: multiprocessing.connection.Connection, answer: Callable[[bytes], bytes]) -> NoReturn:
    """What a fork does, leaving no trace: Python's ordinary end would end what belongs to its parent."""
    try:
        gc.disable()
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for that process, which then closes the connection
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        while True:
            connection.send_bytes(answer(connection.recv_bytes()))
    finally:
        os._exit(0)


def _end_fork(pid: int, connection: multiprocessing.connection.Connection, owner: int) -> None:
    connection.close()
    if os.getpid() != owner:
        return
    with contextlib.suppress(ProcessLookupError, ChildProcessError):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def ending(code: int) -> str:
    """How a process ended that has this exit code, as subprocess gives it."""
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


MOST_JOBS, JOB_BYTES = 4, 1 << 30  # checks that run at once by themselves, and the memory that must be there for each


def usual_jobs() -> int:
    """How many checks run at once where nobody says: as many as there are processors, and memory."""
    there = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(min(processors(), MOST_JOBS, there // JOB_BYTES), 1)


def processors() -> int:
    """How many processors this process may use, a container's quota counted in whole ones."""
    allowed = len(os.sched_getaffinity(0))
    with contextlib.suppress(OSError, ValueError):
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        allowed = min(allowed, max(int(quota) // int(period), 1))
    return allowed


def _is_alive(popen: subprocess.Popen[bytes]) -> bool:
    """Asked without reaping it: until it is reaped, no other process group can have its number."""
    if popen.returncode is not None:
        return False
    if isinstance(popen, Forked):
        return popen.is_running()
    try:
        return os.waitid(os.P_PID, popen.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except ChildProcessError:
        return False


def clean_environment(folder: str) -> dict[str, str]:
    """The environment of a process that meets hostile data in `folder`: of the user's only where packages are."""
    parents = [_package_parent(name) for name in ("gradekit", "torch", "triton")]
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": folder,
        "USER": "gradekit",  # a user of nobody's has no name to look up, and torch's caches ask for one
        "TMPDIR": folder,
        "LANG": "C.UTF-8",
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(parent for parent in parents if parent)),
        "PYTHONUNBUFFERED": "1",
        "TRITON_CACHE_DIR": str(Path(folder, "triton")),
        "TRITON_DEFAULT_FP_FUSION": "1",
        "CUDA_VISIBLE_DEVICES": "",
        "OMP_NUM_THREADS": "1",  # a thread in the fork server would not survive the fork
        "MKL_NUM_THREADS": "1",
        "TORCHDYNAMO_DISABLE": "1",  # torch.compile in a submission runs its function as it stands
    }


def _package_parent(name: str) -> str:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        return ""
    return str(Path(spec.origin).parent.parent)
