"""Where jobs run: grader processes of this machine, or the workers of a Dask cluster. Both
return futures of JobResult as text.

Results come back as JSON of a limited size. A worker that dies loses its jobs, and
nothing else: `run` hands them out again.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import platform
import queue
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Protocol

from gradekit.batch.grader import CARD, LARGEST_ANSWER, Grader, GraderFailed, GradingJob, JobResult, SpeedJob
from gradekit.report import record

if TYPE_CHECKING:
    from distributed import Client


import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import FrameType

from gradekit.batch.grader import FAKE_GPU
from gradekit.confine import linux

SECONDS = 600.0
"""A grading that takes longer is the grader's fault: tracing and running a submission
have tighter limits of their own."""

PATIENCE = 600.0
"""Seconds that a cluster's scheduler may be away."""

RESOURCES = {GradingJob: "grader", SpeedJob: "card"}
"""The Dask resource that a job takes one of, where workers have such."""

AnyJob = GradingJob | SpeedJob

CERTIFICATES = "GRADEKIT_CERTIFICATES"
"""The variable that names a folder with ca.pem, cert.pem and key.pem, for addresses that begin with tls://."""


class ClusterLost(ConnectionError):
    """The cluster's scheduler cannot be reached."""


class Pool(Protocol):
    """Runs jobs somewhere."""

    def submit(self, job: AnyJob) -> Future[str]:
        """The future of what `run_job` answers."""

    def has_gpus(self) -> bool:
        """Whether a worker takes SpeedJobs."""

    def is_lost(self, future: Future[str]) -> bool:
        """Whether no worker has this future any more, although it is not done."""


def graded(text: str) -> JobResult:
    """What `run_job` answered.

    Raises:
        GraderFailed: anything else.
    """
    try:
        answer = JobResult(**json.loads(text))
        record.validate(answer.record)
    except (ValueError, TypeError, record.RecordError) as error:
        raise GraderFailed(f"not a report record: {error}") from None
    return answer


# --- on a worker ------------------------------------------------------------------------------------------------------

_LOCAL = threading.local()
_GRADERS: list[Grader] = []


def run_job(job: AnyJob) -> str:
    """`job`, by this thread's own grader process; the result as JSON. Runs on a worker.

    Raises:
        GraderFailed: there is no result; the next try gets a new process.
    """
    grader = getattr(_LOCAL, "grader", None)
    if grader is None:
        grader = _LOCAL.grader = Grader(getattr(_LOCAL, "card", os.environ.get(CARD, "")))
        _GRADERS.append(grader)
    text = json.dumps(asdict(_with_host(grader.grade(job, SECONDS))), allow_nan=False)
    if len(text) > LARGEST_ANSWER:
        raise GraderFailed(f"the record has {len(text)} characters")
    return text


def _with_host(answer: JobResult) -> JobResult:
    environment = answer.record["environment"] | {"host": platform.node()}
    return JobResult(answer.record | {"environment": environment}, answer.programs, answer.fingerprint)


@atexit.register
def _close_graders() -> None:
    while _GRADERS:
        _GRADERS.pop().close()


# --- this machine -----------------------------------------------------------------------------------------------------


class LocalPool:
    """Threads of this process, each with a grader's process of its own: `workers` of
    them, and one for each of `cards`."""

    def __init__(self, workers: int, cards: Sequence[str] = ()) -> None:
        self._executors_by_job: dict[type, ThreadPoolExecutor] = {GradingJob: _threads(workers, [""] * workers)}
        if cards:
            self._executors_by_job[SpeedJob] = _threads(len(cards), cards)

    def submit(self, job: AnyJob) -> Future[str]:
        """The future of what `run_job` answers."""
        return self._executors_by_job[type(job)].submit(run_job, job)

    def has_gpus(self) -> bool:
        """Whether this machine has a card."""
        return SpeedJob in self._executors_by_job

    def is_lost(self, future: Future[str]) -> bool:
        """Never: its threads live as long as this process."""
        return False

    def stop(self, *, at_once: bool) -> None:
        """End all graders; `at_once`, also in the middle of a job."""
        if at_once:
            for executor in self._executors_by_job.values():
                executor.shutdown(wait=False, cancel_futures=True)
            _close_graders()
        for executor in self._executors_by_job.values():
            executor.shutdown()
        _close_graders()


def _threads(count: int, cards: Sequence[str]) -> ThreadPoolExecutor:
    names: queue.SimpleQueue[str] = queue.SimpleQueue()
    for card in cards:
        names.put(card)

    def begin() -> None:
        _LOCAL.card = names.get_nowait()

    return ThreadPoolExecutor(count, thread_name_prefix="gradekit", initializer=begin)


@contextmanager
def local(workers: int, cards: Sequence[str] = ()) -> Iterator[Pool]:
    """A pool on this machine."""
    pool = LocalPool(workers, cards)
    try:
        yield pool
    except BaseException:
        pool.stop(at_once=True)
        raise
    pool.stop(at_once=False)


# --- a cluster --------------------------------------------------------------------------------------------------------


class ClusterPool:
    """The workers of a Dask scheduler ("tcp://host:8786", "tls://..."), which may die and return, as it may itself.

    Certificates for tls:// lie in the folder that GRADEKIT_CERTIFICATES names, or where Dask's own configuration says.
    """

    def __init__(self, address: str, patience: float = PATIENCE) -> None:
        self.address = address
        self.patience = patience
        self._client: Client | None = None
        self._executors: dict[str, Executor] = {}
        self._client_of: weakref.WeakKeyDictionary[Future[str], Client] = weakref.WeakKeyDictionary()

    def submit(self, job: AnyJob) -> Future[str]:
        """The future of what `run_job` answers on a worker.

        Raises:
            ClusterLost: the scheduler did not come back.
        """
        deadline = time.monotonic() + self.patience
        while True:
            try:
                future = self._executor(RESOURCES[type(job)]).submit(run_job, job)
                assert self._client is not None
                self._client_of[future] = self._client
                return future
            except (OSError, RuntimeError) as error:  # it went away at this very moment
                self._drop()
                if time.monotonic() > deadline:
                    raise ClusterLost(f"{self.address}: {error}") from None
                time.sleep(0.5)

    def has_gpus(self) -> bool:
        """Whether a worker has a card."""
        return self._offers(self._connected(), "card")

    def is_lost(self, future: Future[str]) -> bool:
        """Whether the connection that it was asked for through is gone."""
        asked = self._client_of.get(future)
        return asked is None or asked is not self._client or asked.status in ("closing", "closed")

    def close(self) -> None:
        """Leave the cluster; jobs that it still has are dropped there."""
        self._drop()

    def _executor(self, resource: str) -> Executor:
        client = self._connected()
        if resource not in self._executors:
            restricted = {"resources": {resource: 1}} if self._offers(client, resource) else {}
            self._executors[resource] = client.get_executor(pure=False, **restricted)
        return self._executors[resource]

    def _offers(self, client: Client, resource: str) -> bool:
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
        return any(resource in worker.get("resources", {}) for worker in workers)

    def _connected(self) -> Client:
        """A client of the scheduler that has workers; waited for, if need be.

        Raises:
            ClusterLost: not within the patience.
        """
        from distributed import Client

        deadline = time.monotonic() + self.patience
        while self._client is None or self._client.status != "running":
            self._drop()
            try:
                wait = max(min(deadline - time.monotonic(), 10.0), 1.0)
                self._client = Client(self.address, timeout=wait, security=_security())
                self._client.wait_for_workers(1, timeout=max(deadline - time.monotonic(), 1.0))
            except (OSError, TimeoutError) as error:
                if time.monotonic() > deadline:
                    raise ClusterLost(f"{self.address} cannot be reached: {error}") from None
                time.sleep(0.5)
        return self._client

    def _drop(self) -> None:
        client, self._client = self._client, None
        self._executors.clear()
        if client is not None:
            with contextlib.suppress(Exception):  # it is gone already
                client.close(timeout=2)


def certificates() -> dict[str, str]:
    """The files with which this machine shows who it is and knows the others: ca, cert and key; or none."""
    folder = os.environ.get(CERTIFICATES)
    return {name: os.path.join(folder, f"{name}.pem") for name in ("ca", "cert", "key")} if folder else {}


def _security() -> Any:
    """As Dask takes it; None lets Dask look into its own configuration."""
    from distributed import Security

    files = certificates()
    if not files:
        return None
    return Security(
        tls_ca_file=files["ca"], tls_client_cert=files["cert"], tls_client_key=files["key"], require_encryption=True
    )  # fmt: skip


@contextmanager
def cluster(address: str, patience: float = PATIENCE) -> Iterator[Pool]:
    """A pool of the workers that the scheduler at `address` has."""
    pool = ClusterPool(address, patience)
    try:
        yield pool
    finally:
        pool.close()


# --- lending this machine to a cluster: its workers are processes of Dask's own, which end with this one --------------

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
