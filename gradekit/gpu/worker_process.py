"""The GPU worker's process from outside: started confined, asked with a time limit, and ended. Imports no torch."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gradekit import wire
from gradekit.confine import Means
from gradekit.confine.confinement import HIGHEST_WITHOUT_NAMESPACES
from gradekit.confine.paths import PrivateFolder
from gradekit.gpu import Limit
from gradekit.gpu.faults import CardFault, Kind
from gradekit.processes import START_SECONDS, ChildProcess, Command, clean_environment, ending
from gradekit.program import Program
from gradekit.sandbox import host
from gradekit.versions import version

MODULE = "gradekit.gpu.__main__"

DRIVER = Path("/dev/nvidiactl")

_PASSED_ON = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "LD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH", "CC", "CXX",
              "TRITON_LIBCUDA_PATH", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES")  # fmt: skip
"""What the process sees of the grader's environment, beside PATH: where the driver and a C compiler are."""


def start_early(device: str) -> WorkerProcess | None:
    """A process on the card that `device` names ("auto", "cuda", "cuda:1"), started before this one can ask torch for
    it; None where there seems to be no card: no device of the driver's, none left visible, a torch for CPUs."""
    if not device.startswith(("auto", "cuda")) or not DRIVER.exists() or os.environ.get("CUDA_VISIBLE_DEVICES") == "":
        return None
    is_for_cpus = (version("torch") or "+cpu").endswith("+cpu")
    return None if is_for_cpus else WorkerProcess(device if ":" in device else "cuda:0")


class WorkerProcess:
    """A running worker on `device`, confined `without` those means. What it writes to its standard error (`said`), what
    kernels print, and its progress go to files without a name, so that nothing can be put in their place. Its `folder`,
    with Triton's cache, is its own alone. `prepared` are programs ready to be timed, with their sets."""

    def __init__(self, device: str, without: Sequence[str] = ()) -> None:
        self.prepared: dict[int, tuple[Program, int]] = {}
        self.means: Means | None = None  # until it is ready
        self._private = PrivateFolder("gradekit-card-")
        self.folder = self._private.path
        self._said, self._printed, self._progress = (_note() for _ in range(3))
        self._sock, theirs = socket.socketpair()
        with theirs:
            inherited = (theirs.fileno(), self._progress)
            arguments = (*map(str, inherited), str(self.folder), device, *without)
            settings = environment(self.folder, device)
            command = Command(MODULE, arguments, settings, self.folder, inherited, self._printed, self._said)
            self.child = ChildProcess(command, self._sock)
        self.pid = self.child.pid

    def ready(self) -> None:
        """Waits until it has met the card, confined at least as strongly as is required. Raises wire.WireError or
        ValueError where it could not be started, and CardFault where it is confined less strongly than is required."""
        if self.means is None:
            answer = wire.receive(self._sock, wire.CAP, time.monotonic() + START_SECONDS)
            if not isinstance(answer, dict) or not isinstance(answer.get("ok"), dict):
                raise ValueError("its first message makes no sense")
            self.means = Means.of(answer["ok"].get("means"))
        required = min(host.required, HIGHEST_WITHOUT_NAMESPACES)
        if self.means.level < required:
            raise _too_open(self.means, required)

    def ask(
        self, request: dict[str, Any], seconds: float, memory: int | None, meanwhile: Callable[[], object]
    ) -> dict[str, Any]:
        """The answer to a request with tensors in `memory`; the time of `meanwhile`, called while the process works on
        it, does not count. Raises CardFault where the answer has one, makes no sense, or takes over `seconds`."""
        for descriptor in (self._said, self._printed):
            os.ftruncate(descriptor, 0)
        try:
            wire.send_descriptors(self._sock, [self._progress if memory is None else memory])
            wire.send(self._sock, request, time.monotonic() + seconds)
            meanwhile()
            answer = wire.receive(self._sock, wire.CAP, time.monotonic() + seconds)
        except wire.WireError as error:
            raise self._lost(error, seconds) from None
        try:
            return checked(answer)
        except CardFault as fault:
            raise self._explained(fault) from None

    def said(self) -> str:
        """The end of what it has written to its standard error during the last request."""
        return _tail(self._said)

    def printed(self) -> tuple[str, ...]:
        """The lines that kernels have printed during the last request, from the end."""
        return tuple(_tail(self._printed).splitlines())

    def end(self) -> int:
        """Kills the process and all that it started, and removes its files; its exit code as subprocess gives it."""
        status = self.child.end()
        self._private.remove()
        for descriptor in (self._said, self._printed, self._progress):
            os.close(descriptor)
        return status

    def progress(self) -> dict[str, Any]:
        """What it was last at: {"what": "compile" or another activity, "kernel": name, "line": of the submission}."""
        try:
            told = json.loads(_tail(self._progress))
            return {"what": told["what"], "kernel": told["kernel"], "line": told["line"]}
        except (ValueError, KeyError, TypeError, RecursionError):
            return {"what": "", "kernel": "", "line": None}

    def _explained(self, fault: CardFault) -> CardFault:
        lines = [line for line in self.said().splitlines() if "error:" in line][:3] if fault.kind == "compile" else []
        if not lines:
            return fault
        where = re.match(r"[^:]+\.py:(\d+):", lines[0])
        line = int(where[1]) if where else fault.line
        return CardFault(fault.kind, "\n".join([fault.message, *lines])[:2000], fault.kernel, line)

    def _lost(self, error: wire.WireError, seconds: float) -> LostWorker:
        """The process is gone, silent or senseless: what it was at is to blame."""
        at, status = self.progress(), self.child.end()
        late = isinstance(error, wire.DeadlineExceeded)
        message = f"not done after {seconds:g} seconds" if late else f"the worker's process ended ({ending(status)})"
        kind: Kind = "hang" if late else "crash"
        if at["what"] == "compile":
            kind, message = "compile", f"the compiler: {message}"
        lost = LostWorker(kind, message, str(at["kernel"]), at["line"] if type(at["line"]) is int else None)
        lost.killed = isinstance(error, wire.ConnectionClosed) and status == -signal.SIGKILL
        return lost


class LostWorker(CardFault):
    """The process has ended, or had to be; `killed` says that something else did it, such as a full memory."""

    killed = False


def checked(answer: Any) -> dict[str, Any]:
    """What an answer of the worker's holds. Raises CardFault where it tells of one, or makes no sense."""
    if isinstance(answer, dict) and isinstance(answer.get("ok"), dict):
        return answer["ok"]
    raise CardFault.from_json(answer.get("fault") if isinstance(answer, dict) else None)


def environment(folder: Path, device: str) -> dict[str, str]:
    """All that the worker sees of the environment; Triton's cache is in its own folder, where no submission can be."""
    kept = {name: os.environ[name] for name in _PASSED_ON if name in os.environ} if device != "cpu" else {}
    base = clean_environment(str(folder))
    if device != "cpu":
        base.pop("CUDA_VISIBLE_DEVICES", None)
    return base | {"PATH": os.environ.get("PATH", base["PATH"])} | kept


def _too_open(means: Means, required: int) -> CardFault:
    why = "; ".join(means.missing()[:-1])
    return CardFault(
        "isolation",
        f"the process that compiles kernels is isolated at level {means.level} here, where level {required} is "
        f"required ({why})",
    )


def _note() -> int:
    """The descriptor of an empty file in memory, to be written at its end: for words."""
    descriptor = os.memfd_create("gradekit-note", os.MFD_CLOEXEC)
    fcntl.fcntl(descriptor, fcntl.F_SETFL, os.O_APPEND)
    return descriptor


def _tail(descriptor: int) -> str:
    start = max(os.fstat(descriptor).st_size - Limit.PRINTED_BYTES, 0)
    return os.pread(descriptor, Limit.PRINTED_BYTES, start).decode("utf-8", "replace")
