"""Grades what has no result yet: each distinct submission once, on workers of this machine or of a cluster.

The workers are those of an executor (the standard library's threads, each with a warm grader's process of its own, or a
Dask client's): this module only says what to run, and commits each result when it is known. It may be killed at any
moment; what the store has is never run again.
"""

from __future__ import annotations

import atexit
import base64
import platform
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from gradekit.assignment import Assignment
from gradekit.batch import keys
from gradekit.batch.grader import Grader, GraderFailed, Job
from gradekit.batch.intake import HandIn
from gradekit.batch.store import Key, Store
from gradekit.findings import Cause, Report, Status
from gradekit.report import record
from gradekit.versions import environment

ENOUGH = 2
"""The level of isolation that a class is graded at unless staff say otherwise: nothing beside the grader can be read."""

SECONDS = 600.0
"""A grading that takes longer is the grader's fault: tracing and running a submission have tighter limits of their own."""

TRIES = 2
"""How often a submission is tried where the grader, and not the submission, fails."""

Done = Callable[[str, Mapping[str, Any]], None]
"""Called with a digest and its record, as soon as the result is in the store."""


@dataclass(frozen=True)
class Order:
    """How to grade: the assignment, the seed, the profile of examples, whether hidden tests are used, and the level of
    `isolation` below which no submission is run (see doctor)."""

    assignment: Assignment
    seed: int
    profile: str = "default"
    hidden: bool = True
    machine: str = "cpu"
    isolation: int = ENOUGH

    def key(self, digest: str) -> Key:
        """What the result of a submission is stored by."""
        return Key(self.assignment.id, digest, self.release, self.seed, self.machine)

    @property
    def release(self) -> str:
        return keys.release(self.assignment)


def take_in(store: Store, order: Order, hand_ins: Iterable[HandIn]) -> dict[str, HandIn]:
    """Remember the hand-ins; one of each distinct submission among them, by digest."""
    found = [(hand_in, *_read(hand_in)) for hand_in in hand_ins]
    store.add_hand_ins(order.assignment.id, [(replace(h, problem=problem), digest) for h, digest, problem in found])
    return {digest: replace(h, problem=problem) for h, digest, problem in found}


def _read(hand_in: HandIn) -> tuple[str, str]:
    """The digest of a hand-in, and why it cannot be graded."""
    try:
        return (keys.digest(hand_in.problem.encode()), hand_in.problem) if hand_in.problem else _digest(hand_in)
    except (OSError, keys.TooLarge) as error:
        return keys.digest(str(error).encode()), f"the file cannot be read: {error}"


def _digest(hand_in: HandIn) -> tuple[str, str]:
    return keys.digest(keys.content(hand_in.path)), ""


def waiting(store: Store, order: Order, digests: Iterable[str]) -> list[str]:
    """Those that have no result yet, or nothing but a fault of the grader's."""
    known = store.newest(order.assignment.id, order.release, order.seed)
    done = {digest for (digest, machine), result in known.items() if _is_result(result.record, machine, order)}
    return [digest for digest in dict.fromkeys(digests) if digest not in done]


def _is_result(found: Mapping[str, Any], machine: str, order: Order) -> bool:
    return machine == order.machine and found["status"] != Status.FAULT


def grade(
    store: Store, order: Order, submissions: Mapping[str, HandIn], executor: Executor, done: Done = lambda d, r: None
) -> None:
    """Grade `submissions` (by digest) and commit each result; one bad submission never stops the rest."""
    release = order.release
    futures: dict[Future[dict[str, Any]], tuple[str, int]] = {}
    for digest, hand_in in submissions.items():
        if hand_in.problem:
            _commit(store, order, digest, unreadable(order, hand_in), done)
        else:
            futures[_submit(executor, order, hand_in, release)] = (digest, 1)
    for digest, result in _results(futures, executor, order, submissions, release):
        _commit(store, order, digest, result, done)


def _submit(executor: Executor, order: Order, hand_in: HandIn, release: str) -> Future[dict[str, Any]]:
    content = base64.b64encode(keys.content(hand_in.path)).decode()
    job = Job(
        order.assignment.id, keys.plain_name(order.assignment, hand_in.path), content, release, order.seed, order.profile, order.hidden, order.isolation
    )  # fmt: skip
    return executor.submit(run_job, job)


def _results(
    futures: dict[Future[dict[str, Any]], tuple[str, int]],
    executor: Executor,
    order: Order,
    submissions: Mapping[str, HandIn],
    release: str,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Records as they come; what failed for no reason of the submission's is tried again."""
    while futures:
        again: dict[Future[dict[str, Any]], tuple[str, int]] = {}
        for future in as_completed(list(futures)):
            digest, tries = futures.pop(future)
            try:
                result = future.result()
                if result["status"] != Status.FAULT or tries >= TRIES:
                    yield digest, result
                    continue
            except Exception as error:  # noqa: BLE001  # a lost worker, a full disk: whatever it is, it is not the student's
                if tries >= TRIES:
                    yield digest, fault(order, submissions[digest], error)
                    continue
            again[_submit(executor, order, submissions[digest], release)] = (digest, tries + 1)
        futures = again


def _commit(store: Store, order: Order, digest: str, result: Mapping[str, Any], done: Done) -> None:
    store.add_result(order.key(digest), result, str(result["environment"].get("host") or platform.node()))
    done(digest, result)


def unreadable(order: Order, hand_in: HandIn) -> dict[str, Any]:
    """The record of a hand-in in which no submission can be found."""
    return _without_checks(order, hand_in, Status.REJECTED, hand_in.problem, Cause.UNREADABLE)


def fault(order: Order, hand_in: HandIn, error: BaseException) -> dict[str, Any]:
    """The record of a submission that gradekit failed to grade."""
    return _without_checks(order, hand_in, Status.FAULT, f"{type(error).__name__}: {error}", None)


def _without_checks(order: Order, hand_in: HandIn, status: Status, message: str, cause: Cause | None) -> dict[str, Any]:
    facts = {"path": keys.plain_name(order.assignment, hand_in.path), "sha256": ""}
    report = Report(order.assignment.id, status, facts, (), environment(), 0.0, message, cause, seed=order.seed)
    return record.to_dict(report)


# --- on a worker ------------------------------------------------------------------------------------------------------

_LOCAL = threading.local()
_GRADERS: list[Grader] = []


def run_job(job: Job) -> dict[str, Any]:
    """The record of `job`, from this thread's own warm grader. Runs on a worker.

    Raises:
        GraderFailed: there is none; the next try gets a new process.
    """
    grader = getattr(_LOCAL, "grader", None)
    if grader is None:
        grader = _LOCAL.grader = Grader()
        _GRADERS.append(grader)
    return _with_host(grader.grade(job, SECONDS))


def _with_host(found: dict[str, Any]) -> dict[str, Any]:
    try:
        record.validate(found)
    except record.RecordError as error:
        raise GraderFailed(f"not a report record: {error}") from None
    return found | {"environment": found["environment"] | {"host": platform.node()}}


@atexit.register
def _close_graders() -> None:
    while _GRADERS:
        _GRADERS.pop().close()


@contextmanager
def local_workers(count: int) -> Iterator[Executor]:
    """`count` threads of this process, each with a grader's process of its own."""
    with ThreadPoolExecutor(count, thread_name_prefix="gradekit") as executor:
        try:
            yield executor
        except BaseException:
            executor.shutdown(wait=False, cancel_futures=True)
            _close_graders()
            raise
    _close_graders()


@contextmanager
def cluster_workers(address: str) -> Iterator[Executor]:
    """The workers of a Dask scheduler ("tcp://host:8786", "tls://..."): a lost worker's jobs run again elsewhere."""
    from distributed import Client

    with Client(address) as client:
        yield client.get_executor(retries=TRIES, pure=False)
