"""`python -m gradekit.server.template KIND FD MODULE PATH SOCKET`: imports torch and Triton, then forks a grader for
each client. MODULE has the function `main` that a grader calls; PATH (JSON) is where modules come from.

KIND is "private" (FD is the connection to the only client) or "resident" (it listens at SOCKET, and FD hears of that).
It forks before it reads what a client sends, and so stays a process that no submission has touched and that knows
nothing of anybody.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import io
import json
import os
import pkgutil
import resource
import select
import signal
import socket
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from gradekit import processes, wire
from gradekit.compat import torch_import
from gradekit.server import address, tracers
from gradekit.server.address import CAP

IDLE_SECONDS = 30 * 60.0
"""How long a resident template waits for the next client before it ends."""

GENERATIONS = 32
"""How many graders have what those before them have learned before one begins with nothing, so that nothing adds up."""

STREAMS = 3
ROOMS = (
    "plugin", "subject", "engine", "judge", "prove", "unseen", "relations", "inputs", "sandbox", "report"
)  # fmt: skip
"""The parts of gradekit that nearly every check needs, each imported whole by a resident template."""


@dataclass(frozen=True)
class Grader:
    """A grader that runs: its process, a descriptor that is ready when it has ended, and the client's connection."""

    pid: int
    pidfd: int
    client: socket.socket


class Template:
    """Forks graders for the clients of `listening`, or for the one `client` alone."""

    _closes_all = True

    def __init__(
        self, module: str, control: socket.socket, listening: socket.socket | None, imports: Iterable[str] = ()
    ) -> None:
        self._module, self._control, self._listening = module, control, listening
        self._graders: dict[int, Grader] = {}
        self._poller = select.poll()
        self._imports = iter(imports)
        self._inode = os.stat(listening.getsockname()).st_ino if listening else 0
        self._stop, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)  # says that SIGTERM has come
        signal.signal(signal.SIGTERM, lambda number, frame: None)
        signal.set_wakeup_fd(write)

    def serve(self, client: socket.socket | None = None) -> NoReturn:
        """Until there is nobody left to serve, or nobody has come for long enough."""
        if self._listening is not None:
            self._poller.register(self._listening, select.POLLIN)
            self._poller.register(self._stop, select.POLLIN)
        if client is not None:
            self._begin(client)
        importing = True
        while self._graders or self._listening is not None:
            idle = importing and not self._graders  # a check does not wait for what the next ones need
            ready = self._poller.poll(0 if idle else 1000 * IDLE_SECONDS)
            for number, _ in ready:
                self._turn_to(number)
            if not ready and idle:
                importing = next(self._imports, None) is not None
            elif not ready and not self._graders:
                self._listen_no_more()
        os._exit(0)

    def _listen_no_more(self) -> None:
        if self._listening is not None:
            with contextlib.suppress(OSError):
                where = self._listening.getsockname()
                if os.stat(where).st_ino == self._inode:  # it may be a successor's
                    os.unlink(where)
            self._listening.close()
            self._poller.unregister(self._stop)
            self._listening = None

    def _turn_to(self, number: int) -> None:
        """Does what a descriptor that is ready asks for."""
        if self._listening is not None and number == self._listening.fileno():
            with contextlib.suppress(OSError):
                self._begin(self._listening.accept()[0])
            return
        if number == self._stop:
            return self._listen_no_more()
        grader = self._graders.get(number)
        if grader is None:
            return
        if number == grader.pidfd:
            self._end(grader)
        else:  # a client says nothing after its request: this is its end
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(grader.pid, signal.SIGKILL)
            with contextlib.suppress(ProcessLookupError):
                os.kill(grader.pid, signal.SIGKILL)
            self._poller.unregister(number)

    def _begin(self, client: socket.socket) -> None:
        with tracers.connected(self._control) as ours:
            pid = os.fork()
            if pid == 0:
                self._let_go()
                if self._closes_all:
                    _close_all_but(client.fileno(), ours.fileno())
                _become_grader(client, ours, self._module)
        grader = Grader(pid, os.pidfd_open(pid), client)
        for number, events in ((grader.pidfd, select.POLLIN), (client.fileno(), select.POLLRDHUP)):
            self._graders[number] = grader
            self._poller.register(number, events)

    def _let_go(self) -> None:
        """In a fork: no socket of the template's closes its number later, when that is the number of something else."""
        theirs = [grader.client for grader in self._graders.values()]
        for sock in filter(None, (self._control, self._listening, *theirs)):
            sock.close()

    def _end(self, grader: Grader) -> None:
        code = os.waitstatus_to_exitcode(os.waitpid(grader.pid, 0)[1])
        with contextlib.suppress(wire.WireError):
            wire.send(grader.client, {"exit": code}, time.monotonic() + 1.0)
        for number in (grader.pidfd, grader.client.fileno()):
            del self._graders[number]
            with contextlib.suppress(KeyError):
                self._poller.unregister(number)
        os.close(grader.pidfd)
        grader.client.close()


class Kept(Template):
    """What a grader leaves behind: a fork of it that has its caches (see gradekit.reuse), and forks the graders of
    commands that come next, as long as the assignments' files are those that the caches come from."""

    _closes_all = False  # some are those of an earlier command's objects, which close them

    def __init__(self, module: str, control: socket.socket, listening: socket.socket) -> None:
        super().__init__(module, control, listening)
        self._files = _files()

    def _begin(self, client: socket.socket) -> None:
        if self._files == _files():
            super()._begin(client)
        else:
            self._listen_no_more()


def _files() -> list[tuple[str, int, int]]:
    """The files that what is kept depends on, and when they changed last."""
    from gradekit import reuse  # no part of what tracers are forked from

    every = sorted(path for folder in reuse.relied_on for path in folder.rglob("*") if path.suffix in (".py", ".toml"))
    return [(str(path), (seen := path.stat()).st_mtime_ns, seen.st_size) for path in every]


def _leave_behind(module: str, control: socket.socket, where: str) -> None:
    """Forks a `Kept` of this grader, which listens at `where`; an older one of this installation ends."""
    from gradekit.sandbox import host

    _generation[0] += 1
    if _generation[0] > GENERATIONS or sys.modules["torch"].cuda.is_initialized():  # which no fork could use
        return
    host.stop()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # libraries have threads that the fork does not need
        pid = os.fork()
    if pid:
        return
    me = os.getpid()
    try:
        _detach()
        for path, pid in list(address.running()):
            if path.name.startswith(Path(where).name.partition("_")[0] + "_"):
                path.unlink(missing_ok=True)
                os.kill(pid, signal.SIGTERM)
        Path(where).unlink(missing_ok=True)
        gc.collect()
        gc.freeze()
        Kept(module, control, _bound(where)).serve()
    finally:
        if os.getpid() == me:  # a grader ends as any other
            os._exit(1)


def _detach() -> None:
    """Lets go of what belongs to a command: its session, streams and folder."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in range(STREAMS):
        os.dup2(nowhere, number)
    os.close(nowhere)
    os.chdir("/")


def everything() -> Iterator[str]:
    """Imports what checks need, one module at each step."""
    warnings.simplefilter("ignore", append=True)  # as `begin` does: nothing of it is for whoever reads the streams
    torch_import.the_rest()
    yield "torch"
    for name in ("pytest", "hypothesis", "z3", "jsonschema", "gradekit.cli", "gradekit.checking"):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
        yield name
    for room in ROOMS:
        package = importlib.import_module(f"gradekit.{room}")
        for found in pkgutil.walk_packages(package.__path__, f"gradekit.{room}."):
            with contextlib.suppress(ImportError):
                importlib.import_module(found.name)
            yield found.name
    gc.collect()
    gc.freeze()


# --- in a grader ------------------------------------------------------------------------------------------------------


def _become_grader(client: socket.socket, tracers_sock: socket.socket, module: str) -> NoReturn:
    """Makes this fork the process that the client asks for, and runs it to its end."""
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        client.settimeout(30.0)
        byte, streams, *_ = socket.recv_fds(client, 1, STREAMS)
        client.settimeout(None)
        request = wire.receive(client, CAP, time.monotonic() + 30.0) if byte and len(streams) == STREAMS else None
        if request is None:
            os._exit(0)  # somebody who only looked whether there is a template
        _settle(request, streams)
        wire.send(client, {"pid": os.getpid()})
        client.close()
        processes.forks = tracers.Forks(tracers_sock).start
        if request["keep"]:
            importlib.import_module("gradekit.reuse").keep_between_submissions()
        _exit_code[0] = _ran(module, request["arguments"])
    except BaseException:  # noqa: BLE001  (whatever it is, no grader goes on as a template)
        os._exit(1)
    if request["keep"] and _exit_code[0] in (0, 1):
        with contextlib.suppress(OSError):
            _leave_behind(module, tracers_sock, request["keep"])
    sys.exit()  # what is to be done at the end is done, and `_leave` is the last of it


def _close_all_but(*numbers: int) -> None:
    """What belongs to the template, and to other clients."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) not in numbers:
            with contextlib.suppress(OSError):
                os.close(int(name))


def _settle(request: Mapping[str, Any], streams: list[int]) -> None:
    """What a new Python takes from whoever starts it: streams, folder, environment, limits."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    os.umask(request["umask"])
    with contextlib.suppress(OSError, ValueError):
        os.sched_setaffinity(0, request["processors"])
    for name, limits in request["limits"].items():
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(getattr(resource, name), tuple(limits))
    time.tzset()
    tempfile.tempdir = None
    sys.argv[:] = ["gradekit", *request["arguments"]]
    sys.stdin = sys.__stdin__ = open(0, encoding=request["encoding"], closefd=False)  # type: ignore[misc]  # noqa: SIM115
    sys.stdout = sys.__stdout__ = _text(1, request["encoding"], request["errors"])  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _text(2, request["encoding"], "backslashreplace")  # type: ignore[misc]


def _text(number: int, encoding: str, errors: str) -> io.TextIOWrapper:
    stream = open(number, "wb", closefd=False)  # noqa: SIM115
    return io.TextIOWrapper(stream, encoding, errors, line_buffering=number == 2 or os.isatty(number))


def _ran(module: str, arguments: list[str]) -> int:
    """The exit code of a command."""
    code: object = 0
    try:
        importlib.import_module(module).main(args=arguments, prog_name="gradekit")
    except SystemExit as stop:
        code = stop.code or 0
    except BaseException:  # noqa: BLE001  (as a Python that ends with it)
        sys.excepthook(*sys.exc_info())
        code = 1
    return code if isinstance(code, int) else 1


_exit_code, _generation = [0], [0]


def _leave() -> None:
    """Ends a grader with its exit code, without taking torch apart, which takes half a second."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(_exit_code[0] & 0xFF)


# --- the start --------------------------------------------------------------------------------------------------------


def run(kind: str, descriptor: int, module: str, path: list[str], where: str) -> NoReturn:
    """Serves the socket `descriptor`, or one that listens at `where`; what is forked first forks tracers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    atexit.register(_leave)  # the first, and so the last to be called
    sock = socket.socket(fileno=descriptor)
    if kind == "resident":
        sock = _listening(where, sock)  # at once: whoever connects may wait, and sees whose process this is
    control = begin(sock)
    sys.path[:] = path
    if kind == "private":
        Template(module, control, None).serve(sock)
    Template(module, control, sock, everything()).serve()


def begin(*private: socket.socket) -> socket.socket:
    """Imports torch and Triton, and forks what serves tracers, to which a socket is given; it has none of the `private`
    ones."""
    gc.disable()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch_import.without_parts()
        import triton  # noqa: F401
    gc.freeze()
    control = tracers.forked(*private)
    gc.enable()
    return control


def _listening(where: str, starter: socket.socket) -> socket.socket:
    with starter:
        sock = _bound(where)
        starter.send(b".")
    return sock


def _bound(where: str) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(where)
    sock.listen(64)
    return sock


if __name__ == "__main__":
    run(sys.argv[1], int(sys.argv[2]), sys.argv[3], json.loads(sys.argv[4]), sys.argv[5])
