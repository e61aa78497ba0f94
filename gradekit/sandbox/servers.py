"""The fork server that submissions' processes come from, and the isolation that it must offer them."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gradekit import wire
from gradekit.confine import Means, identity
from gradekit.confine.paths import PrivateFolder
from gradekit.findings import Cause
from gradekit.processes import START_SECONDS, ChildProcess, Command, clean_environment
from gradekit.sandbox.replies import TraceError, Unavailable

CONFINE_SECONDS = 30.0  # seconds that a fork and its confinement may take, on a heavily loaded machine too


class ForkServer:
    """The process that imports torch and triton once, and forks a child for each submission. `pace` is how much slower
    this machine is than the one that limits of seconds were chosen on: 1 or more, 1 until known."""

    def __init__(self, without: tuple[str, ...] = ()) -> None:
        self._folder = PrivateFolder("gradekit-tracer-")
        self.scratch = str(self._folder.path)
        ours, theirs = socket.socketpair()
        with theirs:
            arguments, environment = (str(theirs.fileno()), self.scratch, *without), clean_environment(self.scratch)
            supervisor = "gradekit.tracer.supervisor"
            command = Command(supervisor, arguments, environment, self._folder.path, (theirs.fileno(),))
            self.process = ChildProcess(command, ours, patience=10.0, terminate=True)
        self._control = ours
        self._means: Means | None = None
        self.pace = 1.0
        self._lock = threading.Lock()
        self.abandoned: list[int] = []

    def means(self) -> Means:
        """By what means submissions are confined here. Raises Unavailable where the server cannot be started."""
        try:
            with self._lock:
                return self._wait(time.monotonic() + START_SECONDS)
        except (wire.WireError, OSError, ValueError) as error:
            raise _not_started(error) from None

    def fork(self, limits: Limits, level: int, told: Sequence[int]) -> tuple[int, socket.socket, RunQueue]:
        """A new child, isolated at `level` or above, that may read the file `told`, if any: its process id, the socket
        to it, and its wait for processors. Raises Unavailable where the server cannot be started, or submissions are
        isolated below `level`, and TraceError where the server has ended."""
        while self.abandoned:
            self.end(self.abandoned.pop())
        insist(self.means(), level)
        ours, theirs = socket.socketpair()
        with theirs, contextlib.ExitStack() as failed:
            failed.callback(ours.close)
            answer = self._ask({"do": "fork", "limits": limits.of_process()}, [theirs.fileno(), *told])
            theirs.close()
            run_queue = self._await_confinement(answer["pid"], ours)
            failed.pop_all()
        return answer["pid"], ours, run_queue

    def end(self, pid: int) -> int:
        """Kills a child, by the number that `fork` gave, and all that it started; its wait status."""
        if not self.is_alive():  # and with it, nothing is left
            return 0
        with contextlib.suppress(TraceError, Unavailable):
            return self._ask({"do": "end", "pid": pid}, [])["status"]
        return 0

    def stop(self) -> None:
        """Ends the server and every child, whatever they may be doing, and removes their files."""
        self.process.end()
        self._folder.remove()

    def is_alive(self) -> bool:
        """Whether the server runs and was started by this process."""
        return self.process.is_alive()

    def _await_confinement(self, pid: int, sock: socket.socket) -> RunQueue:
        """What the child sends before it meets a submission: its wait for processors, and that it is confined."""
        deadline = time.monotonic() + CONFINE_SECONDS
        try:
            descriptors = wire.receive_descriptors(sock, deadline)
            wire.receive(sock, wire.CONTROL_CAP, deadline)
            return RunQueue(descriptors[0] if descriptors else None)
        except wire.WireError as error:
            self.end(pid)
            raise Unavailable(
                f"A submission's process could not be confined ({error}): see `gradekit doctor`."
            ) from None

    def _wait(self, deadline: float) -> Means:
        """The server's description of its machine, sent once its imports are done."""
        if self._means is None:
            said = wire.receive(self._control, wire.CONTROL_CAP, deadline)
            self._means, self.pace = Means.of(said["means"]), float(said["pace"])
            if self._means.level < 2:  # the filesystem, and so /proc, is in a submission's sight
                identity.close_to_others()
        return self._means

    def _ask(self, request: dict[str, object], descriptors: list[int]) -> dict[str, int]:
        deadline = time.monotonic() + START_SECONDS
        try:
            with self._lock:
                self._wait(deadline)
                wire.send_descriptors(self._control, descriptors)
                wire.send(self._control, request, deadline)
                return wire.receive(self._control, wire.CONTROL_CAP, deadline)
        except (wire.WireError, OSError, ValueError) as error:
            if self._means is None:  # no submission has run in it yet
                raise _not_started(error) from None
            raise TraceError(Cause.CRASH, f"The tracer's process has ended ({error}).") from None


class Host:
    """This process's fork server, which is started when it is needed, and again after it has died; `required` is the
    level of isolation below which it runs no submission."""

    def __init__(self) -> None:
        self.required = 0
        self._without: tuple[str, ...] = ()
        self._server: ForkServer | None = None

    def server(self) -> ForkServer:
        """The running server, which may still be starting: call it early, to import torch meanwhile."""
        if self._server is None or not self._server.is_alive():
            self.stop()
            self._server = ForkServer(self._without)
        return self._server

    def means(self) -> Means:
        """By what means submissions are confined here; its `level` is 0 to 3. Raises Unavailable without a tracer."""
        return self.server().means()

    def fork(self, limits: Limits, told: Sequence[int]) -> tuple[ForkServer, int, socket.socket, RunQueue]:
        """A process for one submission, which may read the file `told`, if any: its server, its process id there, the
        socket to it, and its wait for processors. Raises Unavailable where the tracer cannot be started, or does not
        reach the required level of isolation."""
        server = self.server()
        return server, *server.fork(limits, self.required, told)

    def stop(self) -> None:
        """Ends the server, if it runs, and every submission's process."""
        if self._server is not None:
            self._server.stop()
        self._server = None

    @contextlib.contextmanager
    def requiring(self, level: int) -> Iterator[None]:
        """Inside, no submission runs that is isolated below `level`, nor a kernel's compiler where it could be isolated
        so. Raises Unavailable where this machine does not reach it, now or whenever a tracer starts later."""
        before, self.required = self.required, level
        try:
            insist(self.means(), level)
            yield
        finally:
            self.required = before

    @contextlib.contextmanager
    def without(self, *means: str) -> Iterator[None]:
        """Inside, the server does without the named means (fields of Means): to see what is left on a machine that has
        less. The server is started anew, before and after."""
        before, self._without = self._without, means
        self.stop()
        try:
            yield
        finally:
            self._without = before
            self.stop()


host = Host()  # the one of this process: a second server would import torch and triton again


def insist(means: Means, level: int) -> None:
    """Accepts `means` that reach `level`. Raises Unavailable where they do not; the message says what is missing."""
    if means.level < level:
        missing = "; ".join(means.missing())
        raise Unavailable(
            f"Submissions are isolated at level {means.level} here, where level {level} is required ({missing}). "
            "See `gradekit doctor`."
        )


def _not_started(error: Exception) -> Unavailable:
    return Unavailable(f"The tracer could not be started ({error}): see `gradekit doctor`.")


# --- how long a process waited for a processor ------------------------------------------------------------------------


class RunQueue:
    """A process's wait for processors: time by the clock without it does not depend on how busy the machine is. Linux
    counts it in a file, `descriptor`, that the process itself opens before it meets a submission, since it may have
    another number in this process's namespace; None where the system does not count."""

    def __init__(self, descriptor: int | None = None) -> None:
        self._descriptor = descriptor

    def seconds(self) -> float:
        """For how long it has waited since it started; 0 where the system does not tell."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            if self._descriptor is not None:
                return int(os.pread(self._descriptor, 100, 0).split()[1]) / 1e9
        return 0.0

    def close(self) -> None:
        """Closes the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor = None


# --- what a submission may use ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Limits:
    """What a submission may use.

    Seconds are those of computing, for loading and for one call, on the machine that they were chosen on: a slower one
    gets more (`ForkServer.pace`). In each, importing packages may take `packages_seconds` more. A submission that
    waits, or has to wait for others on a busy machine, gets `tracer.WAITING` times as many by the clock. A call to be
    timed lowers every configuration of an autotuned kernel: nodes of syntax limit that (`gradekit.tracer.kernels`), and
    `timed_seconds` are more than they take, beside all other calls. `cpu_seconds` are those of all calls together. All
    calls together may keep the grader waiting for `total_seconds`, and `more_seconds` for each of them, whether they
    compute or sleep; the time for which the machine had no processor free for them does not count. `memory_bytes`
    counts beyond what torch and triton take themselves; `file_bytes` is the size of one file; `processes` are those it
    may have at one time, threads included; of what it prints, `output_bytes` are kept; a program, as it comes over the
    wire, has at most `program_bytes`; the programs of all calls have at most `parts` steps and results.
    """

    import_seconds: float = 8.0
    call_seconds: float = 8.0
    packages_seconds: float = 16.0
    timed_seconds: float = 100.0
    cpu_seconds: int = 1200
    total_seconds: float = 120.0
    more_seconds: float = 1.0
    memory_bytes: int = 4 << 30
    file_bytes: int = 64 << 20
    processes: int = 32
    output_bytes: int = 1 << 20
    program_bytes: int = 16 << 20
    parts: int = 500_000

    def of_process(self) -> dict[str, int]:
        """The limits that Linux enforces, by the names of its resource limits."""
        names = ("memory_bytes", "file_bytes", "cpu_seconds", "processes")
        return {name: getattr(self, name) for name in names}


DEFAULT = Limits()
