"""The processes of submissions: forked from the server, confined before any student code runs, and ended with all that
they started."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import socket
import tempfile
from collections.abc import Callable
from dataclasses import replace

from gradekit import wire
from gradekit.confine import identity, rlimits
from gradekit.confine.confinement import Confinement
from gradekit.confine.folders import remove
from gradekit.tracer import quotas

USERS = 256
"""How many user ids the children take in turn, as root: two that live at one time never have the same."""

OPEN_FILES = 256

DATA_BYTES = 3 * quotas.MEMORY_BYTES // 2
"""What one process may have to write to: more than it may keep, for the stacks of threads count whole."""


class Children:
    """The children of one server, with their files in `scratch`; `statm` is an open /proc/self/statm of
    the server, `proc` an open /proc."""

    def __init__(self, confinement: Confinement, scratch: str, statm: int, proc: int) -> None:
        self.confinement = confinement
        self.scratch = scratch
        self.statm, self.proc = statm, proc
        self.made = 0
        if confinement.user is not None:
            os.chmod(scratch, 0o711)  # each child must reach its own folder in there
        self.homes: dict[int, str] = {}
        self.users: dict[int, int | None] = {}
        self.ended: dict[int, int] = {}

    def fork(self, sock: socket.socket, allowed: dict[str, int]) -> int:
        """A new child that answers requests on `sock` and may use what is `allowed`
        (`Limits.of_process`): its process id."""
        self.made += 1
        first = self.confinement.user
        confinement = replace(self.confinement, user=None if first is None else first + self.made % USERS)
        home = tempfile.mkdtemp(prefix="submission-", dir=self.scratch)
        server, pid = os.getpid(), os.fork()
        if pid == 0:
            self._become_child(sock, allowed, home, confinement, server)
        self.homes[pid], self.users[pid] = home, confinement.user
        return pid

    def end(self, pid: int) -> int:
        """Kills a child and all that it started; its wait status, which tells how it ended if it had ended before."""
        if pid not in self.homes:
            return 0  # it may be one of a server before this one
        if pid not in self.ended:
            _kill(os.killpg, pid)  # before waiting: until then the number is nobody else's
            _kill(os.kill, pid)
            self.ended[pid] = os.waitpid(pid, 0)[1]
        user = self.users.pop(pid)
        if user is not None and user >= identity.HIGH and not self.confinement.means.seccomp:
            _kill_all_of(user)  # it may have left its process group
        remove(self.homes.pop(pid))
        return self.ended.pop(pid)

    def reap(self) -> None:
        """Buries what has ended: children, whose status is kept until it is asked for, and what they had started."""
        with contextlib.suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                if found[0] in self.homes:
                    self.ended[found[0]] = found[1]
                    _kill(os.killpg, found[0])

    def end_those_with_too_many_files(self) -> None:
        """Where files are not in memory that is limited for all; such a child ends as
        if by the signal for large files."""
        if self.confinement.means.root:
            return
        for pid, home in self.homes.items():
            if pid not in self.ended and quotas.too_much(home):
                _kill(os.killpg, pid)
                _kill(os.kill, pid)
                os.waitpid(pid, 0)
                self.ended[pid] = signal.SIGXFSZ

    def end_all(self) -> None:
        """Ends every child."""
        for pid in list(self.homes):
            self.end(pid)

    # --- in the child ------------------------------------------------------------------------------------------------

    def _become_child(
        self, sock: socket.socket, allowed: dict[str, int], home: str, confinement: Confinement, server: int
    ) -> None:
        status = 1
        try:
            os.setsid()
            _settle_in(home)
            self._limit(allowed)
            wire.send_descriptors(sock, _schedstat(self.proc))
            confinement.enter(home, server, tasks=allowed["processes"])
            from gradekit.tracer import child

            alone = _alone_with(sock)
            wire.send(alone, {"ok": "confined"})
            child.serve(alone)
            status = 0
        finally:
            os._exit(status)  # nothing of the server's may run in the child's end

    def _limit(self, allowed: dict[str, int]) -> None:
        """Memory is counted on top of what torch and triton map already. Threads map more than they write to."""
        pages = [int(count) * resource.getpagesize() for count in os.pread(self.statm, 100, 0).split()]
        mapped, data = pages[0], pages[5]
        rlimits.lower(
            {
                resource.RLIMIT_AS: mapped + allowed["memory_bytes"],
                resource.RLIMIT_DATA: data + min(allowed["memory_bytes"], DATA_BYTES),
                resource.RLIMIT_FSIZE: allowed["file_bytes"],
                resource.RLIMIT_CPU: allowed["cpu_seconds"],
                resource.RLIMIT_NOFILE: OPEN_FILES,
                resource.RLIMIT_CORE: 0,
            }
        )


def _kill(kill: Callable[[int, int], None], number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        kill(number, signal.SIGKILL)


def _settle_in(home: str) -> None:
    """Temporary files and Triton's cache are the child's own."""
    os.chdir(home)
    os.environ |= {"HOME": home, "TMPDIR": home, "TRITON_CACHE_DIR": os.path.join(home, "triton")}
    tempfile.tempdir = home


def _schedstat(proc: int) -> list[int]:
    """An open file that tells how long this process was ready to run; none where the system does not count."""
    with contextlib.suppress(OSError):
        return [os.open("self/schedstat", os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc)]
    return []


def _alone_with(sock: socket.socket) -> socket.socket:
    """`sock` as descriptor 3, and no other but the standard ones, which lead nowhere."""
    os.dup2(sock.fileno(), 3)
    sock.detach()
    os.closerange(4, 1 << 20)
    return socket.socket(fileno=3)


def _kill_all_of(user: int) -> None:
    """Kills every process of a user at once, as none but that user can."""
    pid = os.fork()
    if pid == 0:
        try:
            identity.become(user)
            os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
