"""Processes forked from one that has imported torch and Triton, and met no submission: tracers, and a class's graders.

`serve` runs in that process. Who has a socket to it sends one end of another socket, over which the fork, and it alone,
reads what it is to be. `Forks` is the side of who asks. The process that tracers come from has read nothing of a
grader's either.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
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
    """Where a process has `module` run in forks: `sock` leads to `serve`. It is of no use to a fork of that process."""

    def __init__(self, sock: socket.socket, module: str = "gradekit.tracer.supervisor") -> None:
        self._sock, self._module, self._owner = sock, module, os.getpid()
        self._lock = threading.Lock()

    def start(self, command: Command) -> subprocess.Popen[bytes] | None:
        """The running process; None where it has to be started in another way."""
        if os.getpid() != self._owner or command.module != self._module or not command.descriptors:
            return None
        ours, theirs = socket.socketpair()
        try:
            with ours, theirs, self._lock:
                socket.send_fds(self._sock, [b"fork"], [theirs.fileno()])
                wire.send_descriptors(ours, command.descriptors)
                environment, folder = dict(command.environment), str(command.folder or ".")
                wire.send(ours, {"arguments": command.arguments[1:], "environment": environment, "folder": folder})
                return ForkedChild(self, int(self._sock.recv(_PID) or 0))
        except (OSError, ValueError, wire.WireError):
            return None

    def reaped(self, pid: int) -> int:
        """The exit code of a child that has ended, which is then forgotten."""
        with self._lock, contextlib.suppress(OSError, ValueError):
            self._sock.send(str(pid).encode())
            return os.waitstatus_to_exitcode(int(self._sock.recv(_PID) or 0))
        return 0


# --- in the process that forks ----------------------------------------------------------------------------------------


Become = Callable[[int], NoReturn]
"""What a fork does: it is given the number of the socket on which `told` reads what it is to be."""


def serve_tracers(control: socket.socket) -> NoReturn:
    """Forks tracers for the graders whose sockets come over `control`, until its other end closes."""
    gc.disable()  # what is imported stays
    torch_import.the_rest()
    from gradekit.tracer import child

    import_module("gradekit.tracer.supervisor")  # what every fork needs
    child.warm_up()
    gc.enable()
    child.pace()
    serve(control, _become_tracer, child.while_idle())


def serve(control: socket.socket, become: Become, idle: Iterable[None] = ()) -> NoReturn:
    """Forks processes that `become` something, for whose sockets come over `control` and over itself, until its other
    end closes; what is to be done while `idle` is done when there was a child, and there is none any more."""
    poller = select.poll()
    poller.register(control, select.POLLIN)
    graders = {control.fileno(): control}
    left: dict[int, int] = {}  # children, and for whom they were forked: who has ended asks for none of them
    steps, waits = iter(idle), False
    while control.fileno() in graders:
        ready = poller.poll(PULSE_MS if left or waits else None)
        if waits and not ready and not left:  # a process that stays, between two checks
            waits = next(steps, steps) is not steps
        for number, _ in ready:
            said, descriptors = _heard(graders[number])
            if said == b".":
                sock = socket.socket(fileno=descriptors[0])
                graders[sock.fileno()] = sock
                poller.register(sock, select.POLLIN)
            elif not said or not _answered(graders[number], said, descriptors, left, become):
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


def _answered(
    grader: socket.socket, said: bytes, descriptors: Sequence[int], left: dict[int, int], become: Become
) -> bool:
    """Whether the grader is still there, after what it has asked for was done."""
    try:
        if not descriptors:
            pid = int(said)
            status = os.waitpid(pid, os.WNOHANG)[1] if left.pop(pid, None) else 0
            grader.send(str(status).encode())
            return True
        pid = os.fork()
        if pid == 0:
            become(descriptors[0])
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
        descriptor, (scratch, *without) = told(3)
        sys.argv[1:] = []
        watch(descriptor, scratch, without)
    finally:
        os._exit(1)


def told(number: int) -> tuple[int, list[str]]:
    """The descriptor and the arguments that a fork was given; it has its environment and folder from now on.

    Raises:
        WireError: there is nobody who says it.
    """
    with socket.socket(fileno=number) as sock:
        deadline = time.monotonic() + 30.0
        (descriptor,) = wire.receive_descriptors(sock, deadline)
        request = wire.receive(sock, CAP, deadline)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    return descriptor, request["arguments"]


def forked(*private: socket.socket) -> socket.socket:
    """A socket to a new fork of this process, which serves tracers and has none of the `private` sockets: to be called
    before anything of a grader's is known here."""
    control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        if os.fork() == 0:
            for sock in (control, *private):
                sock.close()
            serve_tracers(theirs)
    return control


def connected(control: socket.socket) -> socket.socket:
    """A socket of its own to the process that serves tracers, for one grader."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        socket.send_fds(control, [b"."], [theirs.fileno()])
    return ours
