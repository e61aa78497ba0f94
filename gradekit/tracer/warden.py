"""Starts the server in its place, and when the server or the grader ends, ends whatever is left and removes its files.

The warden is small, outside of what it starts, and never meets a submission. Where processes have a namespace of their
own, the server is the first in it, and the kernel ends all the others with it. Elsewhere, whatever loses its parent
becomes the warden's child, and is ended one by one. While it waits, it sees to it that no submission has more than its
share of memory.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Collection, Iterator

from gradekit.confine import identity, linux, namespaces
from gradekit.tracer import place as places
from gradekit.tracer import server, shares
from gradekit.tracer.children import remove
from gradekit.tracer.place import Place

PATIENCE_SECONDS = 5.0
_HEARD = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD}


def watch(descriptor: int, scratch: str, without: Collection[str] = ()) -> None:
    """Serves the socket `descriptor` from the strongest place that there is, until it is closed; see `place.choose`."""
    grader = os.getppid()
    place = places.choose(scratch, without)
    signal.pthread_sigmask(signal.SIG_BLOCK, _HEARD)
    with contextlib.suppress(OSError):
        linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)
    if place.means.apart:
        namespaces.leave(as_user=places.as_user())  # writes to files that a closed process does not own
    identity.close_to_others()
    pid = os.fork()
    if pid == 0:
        _serve(descriptor, place)
    os.close(descriptor)
    try:
        _wait(pid, grader)
    finally:
        _end_all()
        remove(scratch)
        os._exit(0)


def _serve(descriptor: int, place: Place) -> None:
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HEARD)
        with contextlib.suppress(OSError):
            linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
        server.serve(descriptor, place)
    finally:
        os._exit(1)


def _wait(server_pid: int, grader: int) -> None:
    looked = 0.0
    while os.getppid() == grader:  # its end is usually heard of sooner, by the server
        heard = signal.sigtimedwait(_HEARD, shares.PULSE_SECONDS)
        if time.monotonic() - looked > shares.PULSE_SECONDS:  # whatever is heard meanwhile
            shares.enforce(server_pid)
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
    """Kills every process that has become this one's child, until there is none."""
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
