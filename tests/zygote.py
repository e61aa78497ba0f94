"""Processes of gradekit that tests start without importing torch and Triton each time: forks of a process that has.

Importing both takes over two seconds, and the tests start a few hundred processes. `Zygote` is a process that has
imported these two packages as gradekit does; what is asked of it is forked from it, as a child of whoever asks,
with the arguments, the environment, the folder and the descriptors of a Python that is started anew. A child that starts
processes itself (a class's grader) has a zygote of its own, which is forked before anything else happens in the child.

Such a process ends without taking torch apart, which takes half a second.

What such a process does not show: that gradekit's modules can be imported without torch (tests/floors), what
/proc says of its command line and environment, and what Python does once all handlers of `atexit` have run. Tests that
are about a start use `real_start`.
"""

import atexit
import contextlib
import ctypes
import functools
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from tests.patience import GUARD

ROOT = Path(__file__).parents[1]
EXECUTABLE = sys.executable
LONGEST = 1 << 17
"""Bytes of a request: the arguments and the environment of a process."""

STARTERS = {"gradekit", "gradekit.cli", "gradekit.batch.grader"}
"""The modules that start processes themselves."""

PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None)


class Adopted(subprocess.Popen[bytes]):
    """A child that this process has not started itself."""

    def __init__(self, pid: int, words: Sequence[str]) -> None:
        self.pid, self.args, self.returncode = pid, list(words), None
        self.stdin = self.stdout = self.stderr = None
        self._child_created, self._waitpid_lock = True, threading.Lock()


class Zygote:
    """The process that others are forked from; it ends with whoever holds the other end of its socket."""

    def __init__(self, sock: socket.socket, process: subprocess.Popen[bytes] | None = None) -> None:
        self._sock, self._process, self._owner = sock, process, os.getpid()
        self._lock = threading.Lock()

    @classmethod
    def started(cls) -> "Zygote":
        """A new one, which is still importing torch."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [EXECUTABLE, "-P", "-u", "-m", "tests.zygote", str(theirs.fileno())]
            settings = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "LANG": "C.UTF-8"}
            environment = {"PATH": os.environ["PATH"], "PYTHONPATH": python_path()} | settings
            process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])
        return cls(ours, process)

    def start(
        self, words: Sequence[str], environment: Mapping[str, str], folder: Path | None, inherited: Sequence[int],
        standard: tuple[int, int, int], *, session: bool = True,
    ) -> Adopted:  # fmt: skip
        """The process that `python words...` would be, where `words` begin with -m, -c or a file's path. It has the
        descriptors `standard` as its first three, and `inherited` under their own numbers.
        """
        request = {
            "words": list(words), "environment": dict(environment), "folder": str(folder or Path.cwd()),
            "inherited": list(inherited), "session": session, "parent": os.getpid(),
        }  # fmt: skip
        with self._lock, adopting():
            socket.send_fds(self._sock, [json.dumps(request).encode()], [*standard, *inherited])
            return Adopted(int(self._sock.recv(100)), words)

    def is_ours(self) -> bool:
        """Whether it was started by this process, and not by one that this is a fork of."""
        return self._owner == os.getpid()

    def end(self) -> None:
        """Ends it; what was forked from it goes on."""
        self._sock.close()
        if self._process is not None and self.is_ours():
            self._process.wait()


@contextlib.contextmanager
def adopting() -> Iterator[None]:
    """Inside, a process below this one whose parent ends becomes this one's child."""
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        yield
    finally:
        _libc.prctl(PR_SET_CHILD_SUBREAPER, 0)


def python_path() -> str:
    """This checkout first, then whatever this process is run with."""
    return os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))


@functools.cache
def shared() -> Zygote:
    """That of this process, which is started when it is needed."""
    zygote = Zygote.started()
    atexit.register(zygote.end)
    return zygote


def ran(
    words: Sequence[str | Path], *, environment: Mapping[str, str] | None = None, folder: Path | None = None, told: str = ""
) -> subprocess.CompletedProcess[str]:
    """What `python words...` says where it reads `told`, and its exit code; torch and Triton may have been imported. By
    default the environment is this process's own, and this checkout's gradekit is found."""
    import torch

    texts = [str(word) for word in words]
    if environment is None:
        environment = os.environ | {"PYTHONPATH": python_path()}
    if torch.cuda.is_available():
        return subprocess.run(
            [EXECUTABLE, *texts], env=environment, cwd=folder, input=told, capture_output=True, text=True, timeout=GUARD,
            check=False,
        )  # fmt: skip
    with contextlib.ExitStack() as files:
        given, out, err = (files.enter_context(tempfile.TemporaryFile("w+")) for _ in range(3))
        given.write(told)
        given.seek(0)
        standard = (given.fileno(), out.fileno(), err.fileno())
        process = shared().start(texts, environment, folder, (), standard, session=False)
        try:
            code = process.wait(GUARD)
        except BaseException:
            process.kill()
            raise
        for stream in (out, err):
            stream.seek(0)
        return subprocess.CompletedProcess(texts, code, out.read(), err.read())


def starting(zygote: Callable[[], Zygote], really: Callable[[Any], Any]) -> Callable[[Any], subprocess.Popen[bytes]]:
    """What takes the place of `Command.start`, which is `really`."""

    def start(command: Any) -> subprocess.Popen[bytes]:
        from gradekit import processes

        if sys.executable != EXECUTABLE:  # a test has put something else in its place
            return really(command)
        if (forked := processes.forks(command)) is not None:
            return forked
        nothing = os.open(os.devnull, os.O_RDWR)
        try:
            given = [nothing if one == subprocess.DEVNULL else one for one in (command.stdout, command.stderr)]
            out, err = (number if one is None else one for number, one in enumerate(given, 1))
            words = ["-m", command.module, *command.arguments]
            return zygote().start(words, command.environment, command.folder, command.descriptors, (nothing, out, err))
        finally:
            os.close(nothing)

    return start


# --- inside of it -----------------------------------------------------------------------------------------------------


def serve(sock: socket.socket) -> Callable[[], None]:
    """Forks for each request until the other end is closed, which ends this process; returns in forks alone, with what
    they have to do."""
    while True:
        select.select([sock], [], [])
        data, descriptors, *_ = socket.recv_fds(sock, LONGEST, 64)
        if not data:
            os._exit(0)
        read, write = os.pipe()
        between = os.fork()
        if between == 0:
            pid = os.fork()
            if pid:  # its parent's end makes the other a child of whoever asked
                os.write(write, str(pid).encode())
                os._exit(0)
            return _born(sock, json.loads(data), descriptors)
        os.close(write)
        os.waitpid(between, 0)
        answer = os.read(read, 100)
        for descriptor in (read, *descriptors):
            os.close(descriptor)
        sock.send(answer)


def _born(sock: socket.socket, request: Mapping[str, Any], descriptors: list[int]) -> Callable[[], None]:
    """Makes this fork the process that was asked for, and returns what it does."""
    sock.detach()
    while os.getppid() != request["parent"]:
        os.sched_yield()
    if request["session"]:
        os.setsid()
    os.chdir(request["folder"])
    _take(descriptors, [0, 1, 2, *request["inherited"]])
    _settle(request["environment"])
    words = request["words"]
    if words[0] == "-m" and words[1] in STARTERS:
        _start_from_here()
    return lambda: _run(words)


def _take(descriptors: Sequence[int], wanted: Sequence[int]) -> None:
    """Gives the descriptors the numbers that are wanted, and closes all others."""
    import fcntl

    above = max(*wanted, *descriptors) + 1
    moved = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, above) for descriptor in descriptors]
    for descriptor, number in zip(moved, wanted, strict=True):
        os.dup2(descriptor, number)
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in wanted:
            with contextlib.suppress(OSError):
                os.close(int(name))


def _settle(environment: Mapping[str, str]) -> None:
    """What Python would read from its environment when it starts."""
    own = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ.clear()
    os.environ.update(environment)
    path = [part for part in environment.get("PYTHONPATH", "").split(os.pathsep) if part]
    sys.path[:] = path + [part for part in sys.path if part not in own]
    sys.dont_write_bytecode = bool(environment.get("PYTHONDONTWRITEBYTECODE"))
    for action in filter(None, environment.get("PYTHONWARNINGS", "").split(",")):
        warnings.simplefilter(action)  # type: ignore[arg-type]


def _start_from_here() -> None:
    """Has this process's own processes forked from a zygote that it forks now."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        ours.close()
        _run_to_the_end(serve(theirs))
    theirs.close()
    from gradekit.processes import Command

    zygote = Zygote(ours)
    Command.start = starting(lambda: zygote, Command.start)  # type: ignore[method-assign]


def _run(words: Sequence[str]) -> None:
    """What `python words...` does."""
    kind, *arguments = words
    if kind == "-m":
        sys.argv = arguments
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        sys.argv = ["-c", *arguments[1:]]
        exec(compile(arguments[0], "<string>", "exec"), {"__name__": "__main__"})  # noqa: S102  (a test's own text)
    else:
        sys.argv = list(words)
        sys.path.insert(0, str(Path(kind).parent))
        runpy.run_path(kind, run_name="__main__")


def _run_to_the_end(task: Callable[[], None]) -> NoReturn:
    """Runs the task and ends the process with its exit code."""
    code: object = 0
    try:
        task()
    except SystemExit as stop:
        code = stop.code or 0
    except Exception:  # noqa: BLE001  (whatever a program ends with)
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
        code = 1
    if not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    end(code)


def end(code: int) -> NoReturn:
    """Ends this process as Python would, but for taking torch apart."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    os._exit(code & 0xFF)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    from gradekit.compat import torch_import

    torch_import.without_parts()  # as what gradekit forks from does
    import triton  # noqa: F401

    task = serve(socket.socket(fileno=int(sys.argv[1])))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _run_to_the_end(task)
