"""Schedules the grading of a class: each distinct submission once, on the workers of a pool; then its speed on a GPU.

Commits each result as soon as it is known, so that it may be killed at any moment: what is in the store is not run
again. A job that fails because of a machine is submitted again; one that a student's code fails is not.
"""

import base64
import functools
import platform
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field, replace
from typing import Any

from gradekit.assignment import Assignment
from gradekit.batch import grader
from gradekit.batch.grader import GraderFailed, GradingJob, Job, JobResult, SpeedJob
from gradekit.batch.intake import HandIn
from gradekit.batch.pool import Pool, graded
from gradekit.batch.store import ResultKey, Store
from gradekit.checking import unchecked
from gradekit.findings import Cause, Status
from gradekit.report import record
from gradekit.request import GradingOptions
from gradekit.submission import SubmissionError

MAX_TRIES = 2
"""How often a submission is tried where the grader, and not the submission, fails."""

MAX_LOSSES = 6
"""How often a submission is handed out again where the machine that had it was lost."""

CPU = "cpu"
"""The class of machine that grades; others time on their cards."""

POLL_SECONDS = 5.0
"""How often it is checked whether the pool has lost a job, in seconds."""

Done = Callable[[str, Mapping[str, Any]], None]
"""Called with a digest and its record, as soon as the result is in the store."""


@dataclass(frozen=True)
class BatchRequest:
    """How to grade a class: the assignment, and the options for every submission."""

    assignment: Assignment
    options: GradingOptions

    def key(self, digest: str) -> ResultKey:
        """What the result of a submission is stored by."""
        return ResultKey(self.assignment.id, digest, self.grading, self.seed, CPU)

    @property
    def seed(self) -> int:
        """The seed that results are stored by: the secret one, where there is one."""
        return self.public_seed if self.options.secret_seed is None else self.options.secret_seed

    @property
    def public_seed(self) -> int:
        """The seed that reports name."""
        return self.assignment.seed if self.options.seed is None else self.options.seed

    @functools.cached_property
    def release(self) -> str:
        """What tells this release of the assignment from others."""
        return grader.release(self.assignment)

    @functools.cached_property
    def grading(self) -> str:
        """What tells this grading from others of the class: the release, and every option that can change a result."""
        return grader.grading(self.release, self.options)


def take_in(store: Store, request: BatchRequest, hand_ins: Iterable[HandIn]) -> dict[str, HandIn]:
    """Remember the hand-ins; one of each distinct submission among them, by digest."""
    found = list(map(_read, hand_ins))
    store.add_hand_ins(request.assignment.id, found)
    return {hand_in.digest: hand_in for hand_in in found}


def _read(hand_in: HandIn) -> HandIn:
    """The hand-in with its digest, and with why it cannot be graded."""
    problem = hand_in.problem
    try:
        data = problem.encode() or grader.content(hand_in.path)
    except (OSError, SubmissionError) as error:
        problem, data = f"the file cannot be read: {error}", str(error).encode()
    return replace(hand_in, digest=grader.digest(data), problem=problem)


def waiting(store: Store, request: BatchRequest, digests: Iterable[str]) -> list[str]:
    """Those that have no result yet, or nothing but a fault of the grader's."""
    known = records(store, request)
    return [d for d in dict.fromkeys(digests) if d not in known or known[d]["status"] == Status.FAULT]


def grade(
    store: Store, request: BatchRequest, submissions: Mapping[str, HandIn], pool: Pool, done: Done, timed: Done
) -> None:
    """Grade `submissions` (by digest) and commit each result; one bad submission never stops the rest.

    `done` is called for each submission that is graded, `timed` for each whose speed was measured on a GPU.
    Where the pool has cards, what of a result waits for one is measured there; so is what waits of earlier results (see
    `awaiting_gpu`), whose submissions need not be graded again.
    """
    work = _Queue(store, request, submissions, pool, done, timed)
    for digest, hand_in in submissions.items():
        work.begin(digest, hand_in)
    if pool.has_gpus():
        for digest in awaiting_gpu(store, request):
            if digest not in submissions:
                work.time(digest)
    work.end()


def awaiting_gpu(store: Store, request: BatchRequest) -> list[str]:
    """The submissions of whose newest result a part waits for a card."""
    return [digest for digest, found in records(store, request).items() if record.awaits_gpu(found)]


def records(store: Store, request: BatchRequest) -> dict[str, dict[str, Any]]:
    """The newest record of every submission; what was measured on a card is in its place."""
    return _records(store, request.assignment.id, request.grading, request.seed)


def settled(store: Store, assignment: str) -> dict[str, dict[str, Any]]:
    """The newest record of every submission under the options that were said last, whatever has become of the
    assignment and of gradekit since: of an assignment that is not graded now."""
    options = store.options(assignment)
    asked = grader.grading("", options).partition("+")[2] if options else ""
    for release, seed in store.gradings(assignment):
        if release.partition("+")[2] == asked and (not options or options.secret_seed in (None, seed)):
            return _records(store, assignment, release, seed)
    return {}


def _records(store: Store, assignment: str, grading: str, seed: int) -> dict[str, dict[str, Any]]:
    newest = store.newest(assignment, grading, seed)
    found = {digest: dict(r.record) for (digest, machine), r in newest.items() if machine == CPU}
    for (digest, machine), result in newest.items():
        if machine != CPU and digest in found:
            found[digest] = record.merged(found[digest], result.record)
    return found


@dataclass
class _Task:
    """A job for a submission: how often a grader failed at it, and how often a machine was lost with it."""

    digest: str
    job: Job
    tries: int = 0
    losses: int = 0


@dataclass
class _Queue:
    store: Store
    request: BatchRequest
    submissions: Mapping[str, HandIn]
    pool: Pool
    done: Done
    timed: Done
    tasks: dict[Future[str], _Task] = field(default_factory=dict)

    def begin(self, digest: str, hand_in: HandIn) -> None:
        """Have a submission graded; one that cannot be read has its result at once."""
        if hand_in.problem:
            self._unchecked(digest, Status.REJECTED, hand_in.problem, cause=Cause.UNREADABLE)
            return
        try:
            content = base64.b64encode(grader.content(hand_in.path)).decode()
        except (OSError, SubmissionError) as error:
            self._failed(digest, error)
            return
        name = grader.plain_name(self.request.assignment, hand_in.path)
        self._submit(_Task(digest, GradingJob(*self._common(), name, content)))

    def time(self, digest: str) -> None:
        """Have the calls of a graded submission timed that wait for a card, if they were kept."""
        if programs := self.store.programs(self.request.key(digest)):
            name = "submission" + self.request.assignment.suffix
            self._submit(_Task(digest, SpeedJob(*self._common(), name, programs)))

    def _common(self) -> tuple[str, str, dict[str, Any]]:
        return self.request.assignment.id, self.request.release, self.request.options.to_json()

    def end(self) -> None:
        """Take results as they come, until there are none to come."""
        while self.tasks:
            ready, waiting = wait(list(self.tasks), POLL_SECONDS, FIRST_COMPLETED)
            for future in [*ready, *(future for future in waiting if self.pool.is_lost(future))]:
                self._take(self.tasks.pop(future), future)

    def _submit(self, task: _Task) -> None:
        self.tasks[self.pool.submit(task.job)] = task

    def _take(self, task: _Task, future: Future[str]) -> None:
        try:
            answer = graded(future.result(0))
        except GraderFailed as error:
            task.tries += 1
            self._again(task, error, task.tries < MAX_TRIES)
        except Exception as error:  # noqa: BLE001  # a lost worker, a lost scheduler: not the grader's, nor the student's
            task.losses += 1
            self._again(task, error, task.losses < MAX_LOSSES)
        else:
            task.tries += 1
            if answer.record["status"] == Status.FAULT and task.tries < MAX_TRIES:
                self._submit(task)
            else:
                self._keep(task, answer)

    def _again(self, task: _Task, error: Exception, hopeful: bool) -> None:
        if hopeful:
            self._submit(task)
        elif isinstance(task.job, GradingJob):
            self._failed(task.digest, error)

    def _keep(self, task: _Task, answer: JobResult) -> None:
        if isinstance(task.job, SpeedJob):
            self._commit_speed(task.digest, answer)
            return
        self._commit(task.digest, answer)
        if record.awaits_gpu(answer.record) and self.pool.has_gpus():
            self.time(task.digest)

    def _failed(self, digest: str, error: Exception) -> None:
        self._unchecked(digest, Status.FAULT, f"{type(error).__name__}: {error}")

    def _unchecked(self, digest: str, status: Status, message: str, **more: Any) -> None:
        """Commit the record of a submission that no check was tried on."""
        id, seed = self.request.assignment.id, self.request.public_seed
        name = grader.plain_name(self.request.assignment, self.submissions[digest].path)
        self._commit(digest, JobResult(record.to_dict(unchecked(id, name, status, message, seed=seed, **more))))

    def _commit(self, digest: str, answer: JobResult) -> None:
        self._add(self.request.key(digest), answer)
        self.done(digest, answer.record)

    def _commit_speed(self, digest: str, answer: JobResult) -> None:
        if answer.record["status"] == Status.FAULT:  # nothing was measured: it stays pending
            return
        card = str(answer.record["environment"].get("gpu") or "no card")
        self._add(replace(self.request.key(digest), machine=card), answer)
        history = self.store.history(self.request.assignment.id, digest)
        before = next(r.record for r in reversed(history) if r.key == self.request.key(digest))
        self.timed(digest, record.merged(before, answer.record))

    def _add(self, key: ResultKey, answer: JobResult) -> None:
        host = str(answer.record["environment"].get("host") or platform.node())
        uuid = answer.record["environment"].get("gpu_uuid")
        self.store.add_result(
            key, answer.record, f"{host} {uuid}" if uuid else host, programs=answer.programs,
            fingerprint=answer.fingerprint,
        )  # fmt: skip
