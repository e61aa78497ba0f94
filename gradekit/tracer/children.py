"""The processes of submissions: forked from the server, confined before any student code runs, and ended with all that
they started."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import socket
import tempfile
from collections.abc import Callable
from dataclasses import replace

from gradekit import wire
from gradekit.confine import identity, landlock, linux, seccomp
from gradekit.tracer import shares
from gradekit.tracer.place import Place

USERS = 256
"""How many user ids the children take in turn, as root: two that live at one time never have the same."""

OPEN_FILES = 256


class Children:
    """The children of one server in its `place`; `statm` is an open /proc/self/statm of the server."""

    def __init__(self, place: Place, statm: int) -> None:
        self.place = place
        self.statm = statm
        self.made = 0
        if place.user is not None:
            os.chmod(place.scratch, 0o711)  # each child must reach its own folder in there
        self.homes: dict[int, str] = {}
        self.users: dict[int, int | None] = {}
        self.ended: dict[int, int] = {}

    def fork(self, sock: socket.socket, limits: dict[str, int]) -> int:
        """A new child that answers requests on `sock`: its process id."""
        self.made += 1
        user = None if self.place.user is None else self.place.user + self.made % USERS
        home = self._home(user)
        pid = os.fork()
        if pid == 0:
            self._become_child(sock, limits, home, user)
        self.homes[pid], self.users[pid] = home, user
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
        if user is not None and user >= identity.HIGH and not self.place.means.seccomp:
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
        """Where files are not in memory that is limited for all; such a child ends as if by the signal for large files."""
        if self.place.means.root:
            return
        for pid, home in self.homes.items():
            if pid not in self.ended and shares.too_much(home):
                _kill(os.killpg, pid)
                _kill(os.kill, pid)
                os.waitpid(pid, 0)
                self.ended[pid] = signal.SIGXFSZ

    def end_all(self) -> None:
        """Ends every child."""
        for pid in list(self.homes):
            self.end(pid)

    def _home(self, user: int | None) -> str:
        """An empty folder that the child alone may write to."""
        home = tempfile.mkdtemp(prefix="submission-", dir=self.place.scratch)
        if user is not None:
            os.chown(home, user, user)
        return home

    # --- in the child ------------------------------------------------------------------------------------------------

    def _become_child(self, sock: socket.socket, limits: dict[str, int], home: str, user: int | None) -> None:
        status, server = 1, os.getppid()
        try:
            os.setsid()
            _settle_in(home)
            self._limit(limits, user)
            self._confine(home, user, server)
            from gradekit.tracer import child

            alone = _alone_with(sock)
            wire.send(alone, {"ok": "confined"})
            child.serve(alone)
            status = 0
        finally:
            os._exit(status)  # nothing of the server's may run in the child's end

    def _limit(self, limits: dict[str, int], user: int | None) -> None:
        """Memory is counted on top of what torch and triton map already, processes on top of what the user has."""
        mapped = int(os.pread(self.statm, 100, 0).split()[0]) * resource.getpagesize()
        _lower(resource.RLIMIT_AS, mapped + limits["memory_bytes"])
        _lower(resource.RLIMIT_FSIZE, limits["file_bytes"])
        _lower(resource.RLIMIT_CPU, limits["cpu_seconds"])
        _lower(resource.RLIMIT_NPROC, limits["processes"] + (self.place.tasks if user is None else 0))
        _lower(resource.RLIMIT_NOFILE, OPEN_FILES)
        _lower(resource.RLIMIT_CORE, 0)

    def _confine(self, home: str, user: int | None, server: int) -> None:
        """Everything that the place promises, or an error: never less."""
        means, rules = self.place.means, self.place.rules
        if user is not None:
            identity.become(user, keep=self.place.keep)
        if means.seccomp or means.landlock:
            identity.drop_capabilities(self.place.keep)
        with contextlib.suppress(OSError):
            linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)  # after the user has changed: that would clear it
        if os.getppid() != server:
            os._exit(1)
        if means.landlock:
            landlock.restrict(replace(rules, write=(*rules.write, home)))
        if means.seccomp:
            seccomp.install(os.getpid())


def _kill(kill: Callable[[int, int], None], number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        kill(number, signal.SIGKILL)


def _settle_in(home: str) -> None:
    """Temporary files and Triton's cache are the child's own."""
    os.chdir(home)
    os.environ |= {"HOME": home, "TMPDIR": home, "TRITON_CACHE_DIR": os.path.join(home, "triton")}
    tempfile.tempdir = home


def _alone_with(sock: socket.socket) -> socket.socket:
    """`sock` as descriptor 3, and no other but the standard ones, which lead nowhere."""
    os.dup2(sock.fileno(), 3)
    sock.detach()
    os.closerange(4, 1 << 20)
    return socket.socket(fileno=3)


def _lower(which: int, value: int) -> None:
    _, hard = resource.getrlimit(which)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (value, value))


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


def remove(folder: str) -> None:
    """Removes a folder, whatever permissions its contents were given."""
    for path, names, _ in os.walk(folder):  # from the top, so that each folder is open before its turn comes
        for name in names:
            inner = os.path.join(path, name)
            with contextlib.suppress(OSError):
                if not os.path.islink(inner):
                    os.chmod(inner, 0o700)
    shutil.rmtree(folder, ignore_errors=True)
