"""Tracers forked from a process that has imported torch and Triton, met no submission and read nothing of a grader's.

`serve` runs in that process. A grader that is forked from the template has a socket to it: it sends one end of another
socket, over which the fork, and it alone, reads what it is to be. `Forks` is the grader's side.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from gradekit import wire
from gradekit.compat import torch_import
from gradekit.processes import Command, Forked
from gradekit.server.address import CAP

PULSE_MS = 1000
_PID = 8


class ForkedChild(Forked):
    """A process that was forked for this one by `serve`, whose child it is."""

    def __init__(self, forks: Forks, pid: int) -> None:
        self.pid, self.args, self.returncode = pid, [], None
        self.stdin = self.stdout = self.stderr = None
        self._child_created = False  # it is nobody's to wait for here
        self._forks, self._pidfd = forks, os.pidfd_open(pid)

    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self.returncode is None and not select.select([self._pidfd], [], [], 0)[0]

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""
        return None if self.is_running() else self.wait()

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, as subprocess gives it.

        Raises:
            TimeoutExpired: it is still running.
        """
        if self.returncode is None:
            if not select.select([self._pidfd], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
            self.returncode = self._forks.reaped(self.pid)
            os.close(self._pidfd)
        return self.returncode

    def send_signal(self, sig: int) -> None:
        """Sends it a signal, if it runs."""
        if self.is_running():
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, sig)


class Forks:
    """Where a grader has its tracers forked: `sock` leads to `serve`. It is of no use to a fork of the grader."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock, self._owner = sock, os.getpid()

    def start(self, command: Command) -> subprocess.Popen[bytes] | None:
        """The running process; None where it has to be started in another way."""
        if os.getpid() != self._owner or command.module != "gradekit.tracer.supervisor" or not command.descriptors:
            return None
        ours, theirs = socket.socketpair()
        try:
            with ours, theirs:
                socket.send_fds(self._sock, [b"fork"], [theirs.fileno()])
                wire.send_descriptors(ours, command.descriptors)
                environment, folder = dict(command.environment), str(command.folder)
                wire.send(ours, {"arguments": command.arguments[1:], "environment": environment, "folder": folder})
                return ForkedChild(self, int(self._sock.recv(_PID) or 0))
        except (OSError, ValueError, wire.WireError):
            return None

    def reaped(self, pid: int) -> int:
        """The exit code of a child that has ended, which is then forgotten."""
        with contextlib.suppress(OSError, ValueError):
            self._sock.send(str(pid).encode())
            return os.waitstatus_to_exitcode(int(self._sock.recv(_PID) or 0))
        return 0


# --- in the process that forks ----------------------------------------------------------------------------------------


def serve(control: socket.socket) -> NoReturn:
    """Forks tracers for the graders whose sockets come over `control`, until its other end closes."""
    torch_import.the_rest()
    from gradekit.tracer import child

    import_module("gradekit.tracer.supervisor")  # what every fork needs
    child.warm_up()
    child.pace()
    poller = select.poll()
    poller.register(control, select.POLLIN)
    graders = {control.fileno(): control}
    left: dict[int, int] = {}  # children, and for whom they were forked: who has ended asks for none of them
    idle, waits = child.while_idle(), False
    while control.fileno() in graders:
        ready = poller.poll(PULSE_MS if left or waits else None)
        if waits and not ready and not left:  # a process that stays, between two checks
            waits = next(idle, idle) is not idle
        for number, _ in ready:
            said, descriptors = _heard(graders[number])
            if said == b".":
                sock = socket.socket(fileno=descriptors[0])
                graders[sock.fileno()] = sock
                poller.register(sock, select.POLLIN)
            elif not said or not _answered(graders[number], said, descriptors, left):
                poller.unregister(number)
                graders.pop(number).close()
                waits = True
        left = {pid: number for pid, number in left.items() if number in graders or not _reap(pid)}
    os._exit(0)


def _heard(sock: socket.socket) -> tuple[bytes, list[int]]:
    """The next message, and the descriptors with it; nothing where the other side has ended."""
    with contextlib.suppress(OSError):
        return socket.recv_fds(sock, 16, 1)[:2]
    return b"", []


def _answered(grader: socket.socket, said: bytes, descriptors: Sequence[int], left: dict[int, int]) -> bool:
    """Whether the grader is still there, after what it has asked for was done."""
    try:
        if not descriptors:
            pid = int(said)
            status = os.waitpid(pid, os.WNOHANG)[1] if left.pop(pid, None) else 0
            grader.send(str(status).encode())
            return True
        pid = os.fork()
        if pid == 0:
            _become_tracer(descriptors[0])
        left[pid] = grader.fileno()
        os.close(descriptors[0])
        grader.send(str(pid).encode())
    except OSError:
        return False
    return True


def _reap(pid: int) -> bool:
    with contextlib.suppress(ChildProcessError):
        return os.waitpid(pid, os.WNOHANG)[0] != 0
    return True


def _become_tracer(number: int) -> NoReturn:
    """Makes this fork what `python -m gradekit.tracer.supervisor` is when it begins, and runs it."""
    from gradekit.tracer.supervisor import watch

    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.dup2(number, 3)
        os.closerange(4, 1 << 20)
        with socket.socket(fileno=3) as told:
            deadline = time.monotonic() + 30.0
            (descriptor,) = wire.receive_descriptors(told, deadline)
            request = wire.receive(told, CAP, deadline)
        os.environ.clear()
        os.environ.update(request["environment"])
        os.chdir(request["folder"])
        sys.argv[1:] = []
        scratch, *without = request["arguments"]
        watch(descriptor, scratch, without)
    finally:
        os._exit(1)
