"""Processes that are forked from one that has imported torch and Triton: graders of commands and classes, and tracers.

A `Forker` runs in that process. Who has a socket to it, a peer, sends one end of another socket, over which the fork,
and it alone, reads what it is to be. `Forks` is the side of who asks.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, NoReturn

from gradekit import wire
from gradekit.processes import Command, Forked
from gradekit.server import address

IDLE_MS = 30 * 60 * 1000
"""How long a process to which anybody of this user may connect waits for the next one before it ends."""

STOP, PEER, FORK, OWN_FORK = b"stop", b".", b"fork", b"own"
"""What a peer says; its own forks are killed once it has gone."""
_LONGEST = 16


class ForkedChild(Forked):
    """A process that was forked for this one by a `Forker`, whose child it is."""

    def __init__(self, forks: Forks, pid: int) -> None:
        self.pid, self.args, self.returncode = pid, [], None
        self.stdin = self.stdout = self.stderr = None
        self._child_created = False  # it is nobody's to wait for here
        self._forks, self._pidfd = forks, os.pidfd_open(pid)

    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self.returncode is None and not select.select([self._pidfd], [], [], 0)[0]

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, as subprocess gives it. Raises TimeoutExpired where it is still running."""
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


WORKER = "gradekit.gpu.__main__"
MODULES = ("gradekit.tracer.supervisor", WORKER)
"""What is run in forks of a process that has imported torch and Triton, in place of new processes."""


class Forks:
    """Where a process, and no fork of it, has `modules` run in forks: `sock` leads to a `Forker`."""

    def __init__(self, sock: socket.socket, modules: Collection[str] = MODULES) -> None:
        self._sock, self._modules, self._owner = sock, modules, os.getpid()
        self._lock = threading.Lock()

    def start(self, command: Command) -> subprocess.Popen[bytes] | None:
        """The running process; None where it has to be started in another way."""
        if os.getpid() != self._owner or command.module not in self._modules:
            return None
        own = len(command.descriptors)
        request = {"module": command.module, "descriptors": own, "arguments": command.arguments[own:]}
        request |= {"environment": dict(command.environment), "folder": str(command.folder or ".")}
        streams = (each for each in (command.stdout, command.stderr) if each not in (None, subprocess.DEVNULL))
        kind = OWN_FORK if command.module == WORKER else FORK  # the others end by themselves, and tidy up
        return self.fork([*command.descriptors, *streams], request, kind)

    def fork(self, descriptors: Sequence[int], request: dict[str, Any], kind: bytes = FORK) -> ForkedChild | None:
        """A fork that is told this; None where there is none to be had."""
        ours, theirs = socket.socketpair()
        try:
            with ours:
                with theirs, self._lock:
                    socket.send_fds(self._sock, [kind], [theirs.fileno()])
                    child = ForkedChild(self, int(self._sock.recv(_LONGEST) or 0))
                wire.send_descriptors(ours, descriptors)
                wire.send(ours, request)
                return child
        except (OSError, ValueError, wire.WireError):
            return None

    def reaped(self, pid: int) -> int:
        """The exit code of a child that has ended, and is forgotten; of one that nobody knows, that of a kill."""
        with self._lock, contextlib.suppress(OSError, ValueError):
            self._sock.send(str(pid).encode())
            return os.waitstatus_to_exitcode(int(self._sock.recv(_LONGEST)))
        return -signal.SIGKILL


def connected(sock: socket.socket) -> socket.socket:
    """A socket of its own to the `Forker` that `sock` leads to."""
    ours, theirs = pair()
    with theirs:
        socket.send_fds(sock, [PEER], [theirs.fileno()])
    return ours


def pair() -> tuple[socket.socket, socket.socket]:
    """Two ends of a connection between a peer and a `Forker`."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def stop(sock: socket.socket) -> None:
    """Has the `Forker` that `sock` leads to listen no more, unless it has ended, and closes the connection."""
    with sock, contextlib.suppress(OSError):
        sock.send(STOP)


# --- in the process that forks ----------------------------------------------------------------------------------------


class Forker:
    """Forks processes that `become` something (given the number of the socket on which `told` reads what) for its
    peers: `peer`, those that connect to the `listening` socket, and whom they introduce. It ends when none is left and
    none can connect. A peer that has gone takes its forks with it if this `kills`. It forks while it `suits`."""

    def __init__(
        self, become: Callable[[int], NoReturn], peer: socket.socket | None = None,
        listening: tuple[socket.socket, Path] | None = None, *, kills: bool = False,
        suits: Callable[[], bool] = lambda: True,
    ) -> None:  # fmt: skip
        self._listening = listening[0] if listening else None
        self._where = listening[1] if listening else Path()
        self._become, self._kills, self._suits = become, kills, suits
        self._peers: dict[int, socket.socket] = {}
        self._running: dict[int, tuple[int, int, bool]] = {}  # by its pidfd, a fork, its peer, and whether it is killed
        self._ended: dict[int, int] = {}  # wait statuses
        self._poller = select.poll()
        if self._listening is not None:
            self._inode = self._where.stat().st_ino
            self._poller.register(self._listening, select.POLLIN)
        if peer is not None:
            self._meet(peer)

    def serve(self) -> NoReturn:
        """Until there is nobody left to serve, or nobody has come for long enough."""
        while self._peers or self._listening is not None:
            ready = self._poller.poll(None if self._running or self._listening is None else IDLE_MS)
            for number, _ in ready:
                self._turn_to(number)
            if not ready:
                self._listen_no_more()
        os._exit(0)

    def _turn_to(self, number: int) -> None:
        if self._listening is not None and number == self._listening.fileno():
            with contextlib.suppress(OSError):
                self._meet(self._listening.accept()[0])
        elif number in self._running:
            self._reap(number)
        elif number in self._peers:
            try:
                said, descriptors = socket.recv_fds(self._peers[number], _LONGEST, 1)[:2]
                self._answer(number, said, descriptors)
            except OSError:
                self._leave(number)

    def _meet(self, peer: socket.socket) -> None:
        self._peers[peer.fileno()] = peer
        self._poller.register(peer, select.POLLIN)

    def _answer(self, number: int, said: bytes, descriptors: Sequence[int]) -> None:
        if said == PEER:
            self._meet(socket.socket(fileno=descriptors[0]))
        elif said in (FORK, OWN_FORK) and self._suits():
            kills = self._kills or said == OWN_FORK
            self._peers[number].send(str(self._fork(number, descriptors[0], kills)).encode())
        elif said.isdigit():
            for pidfd in [pidfd for pidfd, (pid, *_) in self._running.items() if pid == int(said)]:
                self._reap(pidfd)
            self._peers[number].send(str(self._ended.pop(int(said), 0)).encode())
        else:
            if said in (STOP, FORK):
                address.note("stopped" if said == STOP else "outdated")
                self._listen_no_more()
            self._leave(number)

    def _fork(self, peer: int, descriptor: int, kills: bool) -> int:
        pid = os.fork()
        if pid == 0:
            self._let_go()
            self._become(descriptor)
        os.close(descriptor)
        pidfd = os.pidfd_open(pid)
        self._running[pidfd] = pid, peer, kills
        self._poller.register(pidfd, select.POLLIN)
        return pid

    def _let_go(self) -> None:
        """In a fork: no socket of this one closes its number later, when that is the number of something else."""
        for sock in (*self._peers.values(), *filter(None, [self._listening])):
            sock.close()
        for pidfd in self._running:
            os.close(pidfd)

    def _reap(self, pidfd: int) -> None:
        pid, peer, _ = self._running.pop(pidfd)
        self._poller.unregister(pidfd)
        os.close(pidfd)
        status = os.waitpid(pid, 0)[1]
        if peer in self._peers:
            self._ended[pid] = status

    def _leave(self, number: int) -> None:
        for pidfd, (pid, peer, kills) in self._running.items():
            for kill in (os.killpg, os.kill) if peer == number and kills else ():
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    kill(pid, signal.SIGKILL)
            self._running[pidfd] = pid, -1 if peer == number else peer, kills
        self._poller.unregister(number)
        self._peers.pop(number).close()

    def _listen_no_more(self) -> None:
        if self._listening is not None:
            with contextlib.suppress(OSError):
                if self._where.stat().st_ino == self._inode:  # it may be a successor's
                    self._where.unlink()
            self._poller.unregister(self._listening)
            self._listening.close()
            self._listening = None


def told(number: int, count: int = 1) -> tuple[list[int], dict[str, Any]]:
    """The descriptors and the request given to this fork, in its environment now. Raises WireError or OSError."""
    with socket.socket(fileno=number) as sock:
        deadline = time.monotonic() + 30.0
        descriptors = wire.receive_descriptors(sock, deadline, count)
        request = wire.receive(sock, wire.CAP, deadline)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    return descriptors, request
