"""Imports torch and triton once, then forks a child for each submission.

The parent speaks over one Unix socket: {"do": "fork"} comes with the descriptor of a socket for the new child, which
is answered with its process id; {"do": "end", "pid": n} kills that child's process group, and is answered with how
the child ended. When the parent goes, every child goes with it.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import shutil
import signal
import socket
from collections.abc import Iterator
from typing import Any

from gradekit.tracer import wire

CONTROL_CAP = 1 << 16
IDLE_SECONDS = 5.0
"""A grader that is quiet for so long, and still there, is one that stays: one submission is graded sooner."""


def serve(descriptor: int, scratch: str) -> None:
    """Serves the socket that `descriptor` names until its other end closes; then removes the folder `scratch`."""
    from gradekit.tracer import warm  # imports torch and triton

    control = socket.socket(fileno=descriptor)
    warm.warm_up()
    wire.send(control, {"ok": "ready"})
    children: set[int] = set()
    idle = warm.while_idle()
    try:
        while True:
            _use_the_time(control, idle)
            _answer(control, children)
    except wire.WireError:
        pass
    finally:
        for pid in children:
            _end(pid)
        shutil.rmtree(scratch, ignore_errors=True)
        os._exit(0)  # sooner than taking torch apart


def _use_the_time(control: socket.socket, idle: Iterator[None]) -> None:
    """Does what is still to be warmed up, until a request comes or nothing is left."""
    poller = select.poll()
    poller.register(control, select.POLLIN)
    while not poller.poll(IDLE_SECONDS * 1000):
        if next(idle, "done") == "done":
            return


def _answer(control: socket.socket, children: set[int]) -> None:
    request, descriptors = _receive(control)
    if request["do"] == "fork":
        pid = _fork(control, socket.socket(fileno=descriptors[0]), request["limits"])
        children.add(pid)
        wire.send(control, {"pid": pid})
    else:
        known = request["pid"] in children  # it may be one of a server before this one
        children.discard(request["pid"])
        wire.send(control, {"status": _end(request["pid"]) if known else 0})


def _receive(control: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """The next request; the descriptors travel with one byte that goes before it."""
    byte, descriptors, _, _ = socket.recv_fds(control, 1, 1)
    if not byte:
        raise wire.Closed("end of stream")
    return wire.receive(control, CONTROL_CAP), list(descriptors)


def _fork(control: socket.socket, sock: socket.socket, limits: dict[str, int]) -> int:
    pid = os.fork()
    if pid:
        sock.close()
        return pid
    status = 1
    try:
        control.close()
        os.setsid()
        _limit(limits)
        from gradekit.tracer import child

        child.serve(sock)
        status = 0
    finally:
        os._exit(status)  # nothing of the server's may run in the child's end


def _limit(limits: dict[str, int]) -> None:
    """Memory is counted on top of what torch and triton map already. Namespaces and filesystem rules belong here too."""
    memory = _mapped_bytes() + limits["memory_bytes"]
    _lower(resource.RLIMIT_AS, memory)
    _lower(resource.RLIMIT_FSIZE, limits["file_bytes"])
    _lower(resource.RLIMIT_CORE, 0)


def _lower(which: int, value: int) -> None:
    _, hard = resource.getrlimit(which)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (value, value))


def _mapped_bytes() -> int:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[0]) * resource.getpagesize()


def _end(pid: int) -> int:
    """Kills a child and its process group; its wait status, which tells how it ended if it had ended before."""
    for kill in (os.killpg, os.kill):  # before waiting: until then the number is nobody else's
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)
    return os.waitpid(pid, 0)[1]
