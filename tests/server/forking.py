"""Tracers that come from a process which has torch, as those of `gradekit check` do."""

import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator

from gradekit import processes
from gradekit.processes import clean_environment
from gradekit.server import forks

SERVE = """
import socket, sys, torch, triton
from gradekit.server import template
template.serve_tracers(socket.socket(fileno=int(sys.argv[1])))
"""


@contextlib.contextmanager
def forked_tracers() -> Iterator[None]:
    """Inside, tracers are forked from a process that is started for this; they are started as gradekit starts them."""
    control, theirs = forks.pair()
    ours, other = forks.pair()
    with control, ours:
        with theirs, other:
            command = [sys.executable, "-P", "-W", "ignore", "-c", SERVE, str(theirs.fileno())]
            process = subprocess.Popen(command, env=clean_environment("/nonexistent"), pass_fds=[theirs.fileno()])
            socket.send_fds(control, [b"."], [other.fileno()])
        before, processes.forks = processes.forks, Counted(forks.Forks(ours))
        try:
            yield
        finally:
            used, processes.forks = processes.forks.used, before
            control.close()
            ours.close()  # it serves until its last peer has gone
            process.wait()
    assert used, "no tracer has come from there"


class Counted:
    """Forks that count how many processes have come from there."""

    def __init__(self, source: forks.Forks) -> None:
        self._forks, self.used = source, 0

    def __call__(self, command: processes.Command) -> subprocess.Popen[bytes] | None:
        process = self._forks.start(command)
        assert process is not None or command.module != "gradekit.tracer.supervisor"
        self.used += process is not None
        return process
