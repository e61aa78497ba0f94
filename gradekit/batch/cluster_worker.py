"""The Dask workers of one machine in a cluster: one with all graders for correctness, and one for each GPU.

Each worker is a process of Dask's own, started again whenever it ends, also because its scheduler went away: it joins
the next one at the same address. They end with this process.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType

from gradekit.batch.grader import CARD, FAKE_GPU
from gradekit.batch.pool import certificates
from gradekit.confine import linux

RESTART_SECONDS = 2.0
"""Seconds before a worker that ended is started again."""


@dataclass
class ClusterWorkerProcess:
    """One worker process: its command, and what it sees beyond this process's environment."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    process: subprocess.Popen[bytes] | None = None
    since: float = field(default=-RESTART_SECONDS)

    def keep(self) -> None:
        """Start it if it does not run."""
        if self.process is not None and self.process.poll() is None:
            return
        if time.monotonic() - self.since >= RESTART_SECONDS:
            self.since = time.monotonic()
            self.process = subprocess.Popen(
                self.command,
                env=os.environ | self.environment,
                stdin=subprocess.DEVNULL,
                preexec_fn=_end_with_parent,  # noqa: PLW1509  # no other thread is here
            )

    def end(self) -> None:
        """End it, and wait until it has."""
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(RESTART_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def worker_processes(address: str, graders: int, cards: Sequence[str]) -> list[ClusterWorkerProcess]:
    """The workers of this machine: `graders` at a time for correctness (0: none), and each of `cards` alone."""
    of_cards = [
        ClusterWorkerProcess(
            card, _command(address, 1, "card"), {CARD: card, "CUDA_VISIBLE_DEVICES": "" if card == FAKE_GPU else card}
        )
        for card in cards
    ]
    if not graders:
        return of_cards
    return [
        ClusterWorkerProcess("graders", _command(address, graders, "grader"), {CARD: "", "CUDA_VISIBLE_DEVICES": ""}),
        *of_cards,
    ]


def _command(address: str, threads: int, resource: str) -> list[str]:
    return [
        sys.executable, "-m", "distributed.cli.dask_worker", address, "--nworkers", "1", "--nthreads", str(threads),
        "--resources", f"{resource}={threads}", "--no-nanny", "--no-dashboard", "--memory-limit", "0", *_certificates(),
    ]  # fmt: skip


def _certificates() -> list[str]:
    options = {"ca": "--tls-ca-file", "cert": "--tls-cert", "key": "--tls-key"}
    return [word for name, file in certificates().items() for word in (options[name], file)]


def _end_with_parent() -> None:
    linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)


def serve(found: Sequence[ClusterWorkerProcess]) -> None:
    """Keep all workers running until this process receives SIGTERM or SIGINT."""
    received: list[int] = []

    def end(number: int, frame: FrameType | None) -> None:
        received.append(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    try:
        while not received:
            for worker in found:
                worker.keep()
            time.sleep(0.2)
    finally:
        for worker in found:
            worker.end()
