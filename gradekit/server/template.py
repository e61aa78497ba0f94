"""`python -m gradekit.server.template KIND FD MODULE PATH SOCKET`: imports torch, then forks a grader for each client.
MODULE has the function `main` that a grader calls; PATH (JSON) is where modules come from.

KIND is "private" (FD is the connection to the only client) or "resident" (it listens at SOCKET, and FD hears of that).
It forks before a client says what it wants, and so stays a process that no submission has touched and that knows
nothing of anybody; so does what it forks first, which imports Triton, and from which tracers are forked.
"""

import atexit
import contextlib
import gc
import importlib
import io
import json
import os
import pkgutil
import resource
import signal
import socket
import sys
import tempfile
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from gradekit import processes
from gradekit.compat import torch_import
from gradekit.server import address, forks

KEPT_BYTES = 3 << 29
"""Of memory that a grader may have and still leave itself behind: what adds up from one to the next ends there."""

STREAMS = 3
ROOMS = ("plugin", "subject", "engine", "judge", "prove", "unseen", "inputs", "sandbox", "report")
"""The parts of gradekit that nearly every check needs, each imported whole."""


def everything() -> None:
    """Imports what checks need, so that all that are forked from here have it."""
    warnings.simplefilter("ignore", append=True)  # as `begin` does: nothing of it is for whoever reads the streams
    for name in ("pytest", "hypothesis", "z3", "jsonschema", "gradekit.cli", "gradekit.checking"):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for room in ROOMS:
        package = importlib.import_module(f"gradekit.{room}")
        for found in pkgutil.walk_packages(package.__path__, f"gradekit.{room}."):
            with contextlib.suppress(ImportError):
                importlib.import_module(found.name)
    gc.collect()
    gc.freeze()


# --- in a grader ------------------------------------------------------------------------------------------------------


class Kept(BaseException):
    """Raised in what a grader leaves behind, which is to serve the next command; it unwinds what the grader did."""

    def __init__(self, forker: forks.Forker) -> None:
        self.forker = forker


def _become_grader(number: int, module: str, control: socket.socket) -> NoReturn:
    """Makes this fork the process that a client asks for, to its end. Raises Kept in a fork of it."""
    try:
        os.setsid()
        tracing = forks.connected(control)
        control.close()
        streams, request = forks.told(number, STREAMS)
        signal.signal(signal.SIGINT, _interrupt)
        _settle(request, streams)
        processes.forks = forks.Forks(tracing).start
        if request["keep"]:
            importlib.import_module("gradekit.reuse").keep_between_submissions()
        _exit_code[0] = _ran(module, request["arguments"])
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # there is nothing left to break off
    except BaseException:  # noqa: BLE001  (whatever it is, no grader goes on as a template)
        os._exit(1)
    if request["keep"]:
        with contextlib.suppress(OSError):
            _leave_behind(module, tracing, Path(request["keep"]))
    sys.exit()  # what is to be done at the end is done, and `_leave` is the last of it


def _interrupt(number: int, frame: object) -> NoReturn:
    """As Python does; what was broken off somewhere serves nobody else."""
    _was_interrupted.append(number)
    raise KeyboardInterrupt


def _settle(request: Mapping[str, Any], streams: list[int]) -> None:
    """What a new Python takes from whoever starts it: streams, limits, words."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
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
    code: object = 0
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # one may have come since this process began
        importlib.import_module(module).main(args=arguments, prog_name="gradekit")
    except SystemExit as stop:
        code = stop.code or 0
    except KeyboardInterrupt:  # before click takes it
        code = 128 + signal.SIGINT
    except BaseException:  # noqa: BLE001  (as a Python that ends with it)
        sys.excepthook(*sys.exc_info())
        code = 1
    return code if isinstance(code, int) else 1


_exit_code = [0]
_was_interrupted: list[int] = []


def _leave() -> None:
    """Ends a grader with its exit code, without taking torch apart, which takes half a second."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(_exit_code[0] & 0xFF)


# --- what a grader leaves behind --------------------------------------------------------------------------------------


def _leave_behind(module: str, tracing: socket.socket, where: Path) -> None:
    """Forks what has this grader's caches (see gradekit.reuse), and forks the graders of the next commands while the
    assignments' files stay as they are. It listens at `where` once this returns, in place of whatever did before.
    Raises Kept in that fork."""
    from gradekit.sandbox import host

    why = _why_not(where)
    if why:
        return address.note("nothing-kept", **why)
    host.stop()
    gc.collect()  # while that is quick: nobody looks at what is frozen below, and a submission's results are in cycles
    ready, tell = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # libraries have threads that the fork does not need
        pid = os.fork()
    if pid:
        os.close(tell)
        os.read(ready, 1)  # it listens, or has ended
        return os.close(ready)
    try:
        _detach()
        before = _files()
        with address.locked(where.with_suffix(".lock")):
            older = [sock for path, sock in address.connections() if path == where]
            listening = address.listening(where)
            for sock in older:
                forks.stop(sock)
        os.close(tell)
        os.close(ready)
        importlib.import_module("gradekit.reuse").merge_received()
        gc.freeze()
        address.note("kept", template=os.getpid(), grader=os.getppid())
        become, suits = lambda number: _become_grader(number, module, tracing), lambda: _files() == before
        forker = forks.Forker(become, None, (listening, where), kills=True, suits=suits)
    except BaseException:  # noqa: BLE001  (no fork goes on as the grader)
        os._exit(1)
    raise Kept(forker)


def _why_not(where: Path) -> dict[str, object]:
    """Why nothing is to be left behind at `where` by this grader, if so."""
    if _was_interrupted:
        return {"signal": _was_interrupted[0]}
    if _exit_code[0] not in (0, 1):
        return {"exit_code": _exit_code[0]}
    if not where.exists():  # not even of what has forked this one
        return {"server": "stopped"}
    if sys.modules["torch"].cuda.is_initialized():  # which no fork could use
        return {"card": "in use"}
    _, resident, shared, *_ = map(int, Path("/proc/self/statm").read_text(encoding="ascii").split())
    pages = resident - shared  # torch's libraries are shared by all
    return {"pages": pages} if pages * resource.getpagesize() > KEPT_BYTES else {}


def _files() -> list[tuple[str, int, int]]:
    from gradekit import reuse  # no part of what tracers are forked from

    files = {path for folder in reuse.relied_on for path in folder.rglob("*") if path.suffix in (".py", ".toml")}
    every = sorted(files - reuse.submitted)
    return [(str(path), (seen := path.stat()).st_mtime_ns, seen.st_size) for path in every]


def _detach() -> None:
    os.setsid()
    _hear_no_interrupt()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in range(STREAMS):
        os.dup2(nowhere, number)
    os.close(nowhere)
    os.chdir("/")


# --- the start --------------------------------------------------------------------------------------------------------


def run(kind: str, descriptor: int, module: str, path: list[str], where: str) -> NoReturn:
    """Serves the socket `descriptor`, or one that listens at `where`."""
    _hear_no_interrupt()
    atexit.register(_leave)  # the first, and so the last to be called
    sock, at = socket.socket(fileno=descriptor), None
    if kind == "resident":
        with sock as starter:
            at = address.listening(Path(where)), Path(where)  # at once: whoever connects may wait, and sees whose it is
            starter.send(b".")
    control = begin(*(at or [sock])[:1])
    sys.path[:] = path
    become = lambda number: _become_grader(number, module, control)
    forker = forks.Forker(become, None if at else sock, at, kills=True)
    while True:
        try:
            forker.serve()
        except Kept as kept:
            forker = kept.forker


def _hear_no_interrupt() -> None:
    """Interrupts are for graders. They are blocked, too: one that reaches a fork of this process waits there."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def begin(*private: socket.socket) -> socket.socket:
    """Imports torch, and forks what serves tracers, to which a socket is given, without `private` ones."""
    gc.disable()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch_import.without_parts()
    gc.freeze()
    control, theirs = forks.pair()
    with theirs:
        if os.fork() == 0:
            for sock in (control, *private):
                sock.close()
            serve_tracers(theirs)
    gc.enable()
    return control


# --- in what serves tracers -------------------------------------------------------------------------------------------


def serve_tracers(control: socket.socket) -> NoReturn:
    """Forks tracers and GPU workers for the graders whose sockets come over `control`, until the last has ended."""
    gc.disable()  # what is imported stays
    from gradekit.tracer import child

    importlib.import_module("gradekit.tracer.supervisor")  # what every fork needs
    child.warm_up()
    gc.enable()
    child.pace()
    forks.Forker(_become_child, control).serve()


def _become_child(number: int) -> NoReturn:
    """Makes this fork what Python is when it begins with one of `forks.MODULES`, and runs that."""
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.dup2(number, 3)
        os.closerange(4, 1 << 20)
        descriptors, request = forks.told(3, 2 + STREAMS)
        own, module = request["descriptors"], request["module"]
        for place, stream in enumerate(descriptors[own:], start=1):
            os.dup2(stream, place)
        sys.argv[1:] = []
        if module in forks.MODULES:
            importlib.import_module(module).main([*map(str, descriptors[:own]), *request["arguments"]])
    finally:
        os._exit(1)


if __name__ == "__main__":
    run(sys.argv[1], int(sys.argv[2]), sys.argv[3], json.loads(sys.argv[4]), sys.argv[5])
