"""Where jobs run: graders of this machine, or a Dask cluster's workers. Both return futures of JobResult as text.

Results come back as JSON of a limited size. A worker that dies loses its jobs, which are handed out again.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import platform
import signal
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from gradekit import wire
from gradekit.assignment import Assignment
from gradekit.batch import grader
from gradekit.batch.grader import CARD, FAKE_GPU, GraderFailed, Graders, GradingJob, Job, JobResult, SpeedJob
from gradekit.findings import Report
from gradekit.processes import ChildProcess, Command
from gradekit.report import record
from gradekit.request import GradingOptions, GradingRequest

if TYPE_CHECKING:
    from distributed import Client

T = TypeVar("T")
R = TypeVar("R")

SECONDS = 1800.0
"""A grading that takes longer is the grader's fault: tracing and running a submission have tighter limits."""

MANY = 10  # jobs from which on it pays to grade the solution first, which takes as much as some of them

RESOURCES = {GradingJob: "grader", SpeedJob: "card"}
"""The Dask resource that a job takes one of, where workers have such."""

CERTIFICATES = "GRADEKIT_CERTIFICATES"
"""The variable that names a folder with ca.pem, cert.pem and key.pem, for addresses that begin with tls://."""


class ClusterLost(ConnectionError):
    """The cluster's scheduler cannot be reached."""


def graded(text: str) -> JobResult:
    """What `run_job` answered. Raises GraderFailed where that is no result."""
    try:
        answer = JobResult(**json.loads(text))
        record.validate(answer.record)
    except (ValueError, TypeError) as error:
        raise GraderFailed(f"not a report record: {error}") from None
    return answer


# --- this machine -----------------------------------------------------------------------------------------------------


class GraderPool(contextlib.AbstractContextManager["GraderPool"]):
    """`count` graders of this machine at a time, and one for each of `cards`, which takes SpeedJobs. As many threads
    may ask at once; one more waits until a grader is idle. They are made for so many `jobs` (see Graders), or many."""

    def __init__(self, count: int, cards: Sequence[str] = (), *, jobs: int = MANY) -> None:
        shared = Graders(warms=jobs >= MANY, only=jobs == 1)
        self._lanes = {GradingJob: [shared] * count, SpeedJob: [Graders(card) for card in cards]}
        self._threads = {kind: ThreadPoolExecutor(len(each) or 1) for kind, each in self._lanes.items()}
        self._idle: dict[type, SimpleQueue[Graders]] = {kind: SimpleQueue() for kind in self._lanes}
        for kind, each in self._lanes.items():
            for one in each:
                self._idle[kind].put(one)

    def __exit__(self, *exception: object) -> None:
        """End all graders, also one that still works."""
        for wait in (False, True):  # one may have been started meanwhile
            for threads in self._threads.values():
                threads.shutdown(wait=wait, cancel_futures=True)
            for one in {one for each in self._lanes.values() for one in each}:
                one.close()

    def has_gpus(self) -> bool:
        """Whether this machine has a card."""
        return bool(self._lanes[SpeedJob])

    def is_lost(self, future: Future[str]) -> bool:
        """Never: its threads live as long as this process."""
        return False

    def map(self, work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """`work` of each item, in their order, with as many at once as there are graders; `work` may ask them."""
        return self._threads[GradingJob].map(work, items)

    def submit(self, job: Job) -> Future[str]:
        """The future of what `run_job` answers."""
        return self._threads[type(job)].submit(lambda: _answer(self.graded(job)))

    def graded(self, job: Job, seconds: float = SECONDS) -> JobResult:
        """What an idle grader answers. Raises GraderFailed where its process died, or took longer than `seconds`."""
        graders = self._idle[type(job)].get()
        try:
            return graders.grade(job, seconds)
        finally:
            self._idle[type(job)].put(graders)

    def grade(self, request: GradingRequest) -> Report:
        """The report on a submission that is a file: as `gradekit.plugin.grade`, by `graded` in another process."""
        path = request.submission
        assert isinstance(path, Path), "a pool grades files"
        asked = grading_job(request.assignment, path.name, path.read_bytes(), request.options)
        return record.from_dict(self.graded(asked).record)


@contextlib.contextmanager
def graders(jobs: int | None) -> Iterator[tuple[Callable[[GradingRequest], Report], Callable[..., Iterable[Any]]]]:
    """How to grade a file, and the `map` that grades several: by `jobs` warm graders, by default one a core; where
    there is a GPU and no `jobs` are asked for, in this process, in order."""
    if jobs is None and grader.visible_cards():
        from gradekit.plugin import grade

        yield grade, map
        return
    with GraderPool(jobs or os.cpu_count() or 1) as pool:
        yield pool.grade, pool.map


def grading_job(
    assignment: Assignment, name: str, content: bytes, options: GradingOptions, *, digests: bool = False
) -> GradingJob:
    """The job that grades the file `name` with this `content`."""
    text = base64.b64encode(content).decode("ascii")
    return GradingJob(assignment.id, grader.release(assignment), options.to_json(), name, text, digests=digests)


# --- a cluster --------------------------------------------------------------------------------------------------------

_GRADERS = Graders(os.environ.get(CARD, ""), warms=not os.environ.get(CARD))


def run_job(job: Job) -> str:
    """What `job` comes to, as JSON. Runs on a worker of a cluster. Raises GraderFailed where there is no result."""
    return _answer(_GRADERS.grade(job, SECONDS))


def _answer(result: JobResult) -> str:
    environment = result.record["environment"] | {"host": platform.node()}
    named = JobResult(result.record | {"environment": environment}, result.programs, result.fingerprint)
    text = json.dumps(asdict(named), allow_nan=False)
    if len(text) > wire.CAP:
        raise GraderFailed(f"the record has {len(text)} characters")
    return text


class ClusterPool:
    """The workers of a Dask scheduler, which may die and return, as it may itself. Certificates for tls:// are in the
    folder that GRADEKIT_CERTIFICATES names, or where Dask's own configuration says."""

    def __init__(self, address: str, patience: float = 600.0) -> None:
        """`patience` is how many seconds the scheduler may be away."""
        self.address = address
        self.patience = patience
        self._client: Client | None = None
        self._executors: dict[str, Executor] = {}
        self._client_of: weakref.WeakKeyDictionary[Future[str], Client] = weakref.WeakKeyDictionary()

    def submit(self, job: Job) -> Future[str]:
        """The future of what `run_job` answers on a worker. Raises ClusterLost where the scheduler stays away."""

        def submitted(client: Client) -> Future[str]:
            future = self._executor(client, RESOURCES[type(job)]).submit(run_job, job)
            self._client_of[future] = client
            return future

        return self._patiently(submitted)

    def has_gpus(self) -> bool:
        """Whether a worker has a card. Raises ClusterLost as `submit`."""
        return self._patiently(lambda client: _offers(client, "card"))

    def is_lost(self, future: Future[str]) -> bool:
        """Whether the connection that it was asked for through is gone."""
        asked = self._client_of.get(future)
        return asked is None or asked is not self._client or asked.status in ("closing", "closed")

    def _executor(self, client: Client, resource: str) -> Executor:
        if resource not in self._executors:
            restricted = {"resources": {resource: 1}} if _offers(client, resource) else {}
            self._executors[resource] = client.get_executor(pure=False, **restricted)
        return self._executors[resource]

    def _patiently(self, ask: Callable[[Client], T]) -> T:
        """What `ask` gives for a client of the scheduler, once that is there and has workers."""
        deadline = time.monotonic() + self.patience
        while True:
            try:
                return ask(self._connected(deadline - time.monotonic()))
            except (OSError, RuntimeError) as error:  # it may have gone away at this very moment
                self.close()
                if time.monotonic() > deadline:
                    raise ClusterLost(f"{self.address} cannot be reached: {error}") from None
                time.sleep(0.5)

    def _connected(self, seconds: float) -> Client:
        from distributed import Client

        if self._client is None or self._client.status != "running":
            self.close()
            self._client = Client(self.address, timeout=max(min(seconds, 10.0), 1.0), security=_security())
            self._client.wait_for_workers(1, timeout=max(seconds, 1.0))
        return self._client

    def close(self) -> None:
        """Leave the cluster; jobs that it still has are dropped there."""
        client, self._client = self._client, None
        self._executors.clear()
        if client is not None:
            with contextlib.suppress(Exception):  # it is gone already
                client.close(timeout=2)


def _offers(client: Client, resource: str) -> bool:
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    return any(resource in worker.get("resources", {}) for worker in workers)


def certificates() -> dict[str, str]:
    """The files with which this machine shows who it is and knows the others: ca, cert and key; or none."""
    folder = os.environ.get(CERTIFICATES)
    return {name: os.path.join(folder, f"{name}.pem") for name in ("ca", "cert", "key")} if folder else {}


def can_encrypt() -> bool:
    """Whether there are certificates for an address that begins with tls://, here or in Dask's own configuration."""
    import dask

    files = certificates().values() or [dask.config.get("distributed.comm.tls.ca-file", None) or ""]
    return all(map(os.path.isfile, files))


def _security() -> Any:
    """As Dask takes it; None lets Dask look into its own configuration."""
    from distributed import Security

    files = certificates()
    if not files:
        return None
    return Security(
        tls_ca_file=files["ca"], tls_client_cert=files["cert"], tls_client_key=files["key"], require_encryption=True
    )  # fmt: skip


Pool = GraderPool | ClusterPool  # what runs jobs: `submit` gives the future of what `run_job` answers


# --- lending this machine to a cluster: its workers are processes of Dask's own, which end with this one --------------

RESTART_SECONDS = 2.0
"""How often it is looked whether a worker has ended, and is to be started again; and how long one may take to end."""


def worker_commands(address: str, graders: int, cards: Sequence[str]) -> list[Command]:
    """The workers of this machine: `graders` at a time for correctness (0: none), and each of `cards` alone."""
    grading = [_command(address, graders, "grader", "")] if graders else []
    return [*grading, *(_command(address, 1, "card", card) for card in cards)]


def _command(address: str, threads: int, resource: str, card: str) -> Command:
    options = {"ca": "--tls-ca-file", "cert": "--tls-cert", "key": "--tls-key"}
    secure = [word for name, file in certificates().items() for word in (options[name], file)]
    words = (
        address, "--nworkers", "1", "--nthreads", str(threads), "--resources", f"{resource}={threads}",
        "--no-nanny", "--no-dashboard", "--memory-limit", "0", *secure,
    )  # fmt: skip
    sees = {CARD: card, "CUDA_VISIBLE_DEVICES": "" if card == FAKE_GPU else card}
    return Command(
        "distributed.cli.dask_worker", words, os.environ | sees, stdout=None, stderr=None, dies_with_parent=True
    )


def serve(commands: Sequence[Command]) -> None:
    """Keep all workers running until this process receives SIGTERM or SIGINT."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    workers: dict[int, ChildProcess] = {}
    try:
        while True:
            for number, command in enumerate(commands):
                if number not in workers or not workers[number].is_alive():
                    workers[number] = ChildProcess(command, patience=RESTART_SECONDS, terminate=True)
            time.sleep(RESTART_SECONDS)
    except KeyboardInterrupt:
        for worker in workers.values():
            worker.end()
