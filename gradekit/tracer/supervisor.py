"""`python -m gradekit.tracer.supervisor FD SCRATCH [MEANS...]`: starts the fork server, and when the server or the
grader ends, ends whatever is left and removes its files. Serves the Unix socket that it inherits as FD, keeps files in
the folder SCRATCH, and confines submissions as strongly as it can, but for the MEANS that it is to do without.

The supervisor is small, outside of what it starts, and never meets a submission. Where processes have a
namespace of their own, the server is the first in it, and the kernel ends all the others with it. Elsewhere,
whatever loses its parent becomes the supervisor's child, and is ended one by one. While it waits, it enforces
each submission's quota of memory.
"""

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Collection, Iterator, Sequence

from gradekit.confine import identity, linux, namespaces
from gradekit.confine.confinement import Confinement, for_submissions
from gradekit.confine.landlock import Rules
from gradekit.confine.paths import DEVICES, readable, remove, runnable
from gradekit.tracer.children import PULSE_SECONDS, enforce, serve

OWN = ("__init__.py", "program.py", "origins.py", "wire.py", "compat", "tracer", "confine")
"""The parts of gradekit that a submission's process may read."""

PATIENCE_SECONDS = 5.0
_HEARD = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD}


def watch(descriptor: int, scratch: str, without: Collection[str] = ()) -> None:
    """Serves the socket `descriptor` until it is closed; submissions are confined as strongly as this machine allows,
    but `without` those means (names of fields of `Means`)."""
    rules = Rules(read=tuple(readable(OWN)), run=tuple(runnable()), write=DEVICES)
    confinement = for_submissions(scratch, rules, without)
    signal.pthread_sigmask(signal.SIG_BLOCK, _HEARD)
    with contextlib.suppress(OSError):
        linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)
    if confinement.means.apart:
        namespaces.leave()  # writes to files that a closed process does not own
    identity.close_to_others()
    pid = os.fork()
    if pid == 0:
        _serve(descriptor, scratch, confinement)
    try:
        _wait(pid, descriptor)
    finally:
        _end_all()
        remove(scratch)
        os._exit(0)


def _serve(descriptor: int, scratch: str, confinement: Confinement) -> None:
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HEARD)
        with contextlib.suppress(OSError):
            linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
        serve(descriptor, scratch, confinement)
    finally:
        os._exit(1)


def _wait(server_pid: int, descriptor: int) -> None:
    """Until the server ends, as it does where the grader closes the socket `descriptor`, or that is seen here first."""
    looked, poller = 0.0, select.poll()
    poller.register(descriptor, select.POLLRDHUP)
    while not poller.poll(0):
        heard = signal.sigtimedwait(_HEARD, PULSE_SECONDS)
        if time.monotonic() - looked > PULSE_SECONDS:  # whatever is heard meanwhile
            enforce(server_pid)
            looked = time.monotonic()
        if heard is None:
            continue
        if heard.si_signo != signal.SIGCHLD:
            return
        for pid in _reaped():
            if pid == server_pid:
                return


def _reaped() -> Iterator[int]:
    with contextlib.suppress(ChildProcessError):
        while pid := os.waitpid(-1, os.WNOHANG)[0]:
            yield pid


def _end_all() -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        left = children()
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        list(_reaped())
        if not left:
            return
        time.sleep(0.002)


def children() -> list[int]:
    """The process ids of this process's children, as /proc shows them."""
    found = []
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            pid = int(name)
            with open(f"/proc/{name}/stat", "rb") as stat:
                if int(stat.read().rpartition(b")")[2].split()[1]) == os.getpid():
                    found.append(pid)
    return found


def main(words: Sequence[str]) -> None:
    """Watches, as these words say."""
    watch(int(words[0]), words[1], words[2:])


if __name__ == "__main__":
    main(sys.argv[1:])
