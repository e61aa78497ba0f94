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
from gradekit.authoring.python_text import points_of
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

MAX_TRIES = 2  # how often a submission is tried where the grader, and not the submission, fails

MAX_LOSSES = 6  # how often a submission is handed out again where the machine that had it was lost

CPU = "cpu"  # the class of machine that grades; others time on their cards

POLL_SECONDS = 5.0  # how often it is checked whether the pool has lost a job, in seconds

Done = Callable[[str, Mapping[str, Any]], None]
"""Called with a digest and its record, as soon as the result is in the store."""


@dataclass(frozen=True)
class Grading:
    """One way to grade a class: an assignment with the options for every submission, and what is in the store of it."""

    store: Store
    assignment: Assignment
    options: GradingOptions

    def key(self, digest: str) -> ResultKey:
        """What the result of a submission is stored by."""
        return ResultKey(self.assignment.id, digest, self.name, self.seed, CPU)

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
    def name(self) -> str:
        """What tells this grading from others of the class: the release, and every option that can change a result."""
        return grader.grading(self.release, self.options)

    def records(self) -> dict[str, dict[str, Any]]:
        """The newest record of every submission, with what a card measured; one of an earlier release says so."""
        return _book(self.store, self.assignment.id, self.options, self.name)

    def of_this_release(self) -> dict[str, dict[str, Any]]:
        """The newest records of this very release."""
        return _records(self.store, self.assignment.id, self.name, self.seed)

    def changed(self) -> list[str]:
        """A sentence that says what has changed since results in the book were made; none where nothing has."""
        if not self.records().keys() - self.of_this_release().keys():
            return []
        suits = _with_options(self.store, self.assignment.id, self.options)
        before = next(name.partition("+")[0] for name, _ in suits if name != self.name)
        kept, now = self.store.contents(self.assignment.id, before), grader.contents(self.assignment)
        names = [name for name in now | kept if kept.get(name) != now.get(name)] if kept else ["the tests or gradekit"]
        said = ", ".join(name + _points(kept.get(name, ""), now.get(name, "")) for name in names)
        return [f"since points were given, {said} changed; who is not graded again keeps them, as the report says"]

    def take_in(self, hand_ins: Iterable[HandIn]) -> dict[str, HandIn]:
        """Remember the hand-ins; those without a result, or with nothing but a fault, by digest in a fixed order."""
        found, known = list(map(_read, hand_ins)), self.of_this_release()
        self.store.add_hand_ins(self.assignment.id, found)
        waits = {one.digest: one for one in found if known.get(one.digest, {"status": "fault"})["status"] == "fault"}
        return dict(sorted(waits.items()))  # a sample of them comes first

    def awaiting_gpu(self) -> list[str]:
        """The submissions of whose newest result a part waits for a card."""
        return [digest for digest, found in self.of_this_release().items() if record.awaits_gpu(found)]


def _read(hand_in: HandIn) -> HandIn:
    problem = hand_in.problem
    try:
        data = problem.encode() or grader.content(hand_in.path)
    except (OSError, SubmissionError) as error:
        problem, data = f"the file cannot be read: {error}", str(error).encode()
    return replace(hand_in, digest=grader.digest(data), problem=problem)


def settled(store: Store, assignment: str) -> dict[str, dict[str, Any]]:
    """The newest records under the last options, whatever has become of assignment and gradekit since."""
    return _book(store, assignment, store.options(assignment) or GradingOptions(hidden=True))


EARLIER = "These points were given by an earlier release of the tests or of gradekit."


def _book(store: Store, assignment: str, options: GradingOptions, now: str = "") -> dict[str, dict[str, Any]]:
    """The newest records under these options, first those of the grading `now`, by default the newest one; those of
    other releases say so. A fault counts only where it is alone."""
    suits, found = _with_options(store, assignment, options), dict[str, dict[str, Any]]()
    now = now or next((name for name, _ in suits), "")
    for name, seed in sorted(suits, key=lambda each: (each[0] == now, -suits.index(each))):
        for digest, each in _records(store, assignment, name, seed).items():
            if digest not in found or each["status"] != "fault":
                found[digest] = each if name == now else each | {"message": each["message"] or EARLIER}
    return found


def _with_options(store: Store, assignment: str, options: GradingOptions) -> list[tuple[str, int]]:
    """The gradings under these options, of any release, the newest first."""
    asked, seed = grader.grading("", options).partition("+")[2], options.secret_seed
    return [one for one in store.gradings(assignment) if one[0].partition("+")[2] == asked and seed in (None, one[1])]


def _points(before: str, now: str) -> str:
    """Of two texts of a test file, the tests that count otherwise: " (test_sizes counts 10, before 20)"."""
    was, is_now = points_of(before), points_of(now)
    pairs = ((name, is_now.get(name, "nothing"), was.get(name, "nothing")) for name in was | is_now)
    said = [f"{name} counts {new}, before {old}" for name, new, old in pairs if new != old]
    return f" ({'; '.join(said)})" * bool(said)


def _records(store: Store, assignment: str, grading: str, seed: int) -> dict[str, dict[str, Any]]:
    newest = store.newest(assignment, grading, seed)
    found = {digest: dict(r.record) for (digest, machine), r in newest.items() if machine == CPU}
    for (digest, machine), result in newest.items():
        if machine != CPU and digest in found:
            found[digest] = record.merged(found[digest], result.record)
    return found


def grade(grading: Grading, submissions: Mapping[str, HandIn], pool: Pool, done: Done, timed: Done) -> None:
    """Grade `submissions` (by digest) and commit each result, which is `done`; one bad submission never stops the rest.
    Where the pool has cards, what waits for one is `timed` there, also of earlier results."""
    grading.store.add_release(grading.assignment.id, grading.release, grader.contents(grading.assignment))
    work = _Queue(grading, submissions, pool, done, timed)
    for digest in submissions:
        work.begin(digest)
    for digest in grading.awaiting_gpu() if pool.has_gpus() else ():
        if digest not in submissions:
            work.time(digest)
    while work.tasks:
        ready, waiting = wait(list(work.tasks), POLL_SECONDS, FIRST_COMPLETED)
        for future in [*ready, *filter(pool.is_lost, waiting)]:
            work.take(work.tasks.pop(future), future)


@dataclass
class _Task:
    """A job for a submission: how often a grader failed at it, and how often a machine was lost with it."""

    digest: str
    job: Job
    tries: int = 0
    losses: int = 0


@dataclass
class _Queue:
    grading: Grading
    submissions: Mapping[str, HandIn]
    pool: Pool
    done: Done
    timed: Done
    tasks: dict[Future[str], _Task] = field(default_factory=dict)

    def begin(self, digest: str) -> None:
        """Have a submission graded; one that cannot be read has its result at once."""
        hand_in = self.submissions[digest]
        if hand_in.problem:
            self._unchecked(digest, Status.REJECTED, hand_in.problem, cause=Cause.UNREADABLE)
            return
        try:
            content = base64.b64encode(grader.content(hand_in.path)).decode()
        except (OSError, SubmissionError) as error:
            self._failed(digest, error)
            return
        name = grader.plain_name(self.grading.assignment, hand_in.path)
        self._submit(_Task(digest, GradingJob(*self._common(), name, content)))

    def time(self, digest: str) -> None:
        """Have the calls of a graded submission timed that wait for a card, if they were kept."""
        if programs := self.grading.store.programs(self.grading.key(digest)):
            name = "submission" + self.grading.assignment.suffix
            self._submit(_Task(digest, SpeedJob(*self._common(), name, programs)))

    def take(self, task: _Task, future: Future[str]) -> None:
        """Keep what came of a task, or try it again where that is no fault of the submission's."""
        answer: JobResult | Exception
        try:
            answer = graded(future.result(0))
        except Exception as error:  # noqa: BLE001  # the grader's, or a machine's that was lost: never the student's
            answer = error
        if isinstance(answer, (JobResult, GraderFailed)):
            task.tries += 1
            failed = isinstance(answer, GraderFailed) or answer.record["status"] == Status.FAULT
            again = failed and task.tries < MAX_TRIES
        else:
            task.losses += 1
            again = task.losses < MAX_LOSSES
        if again:
            self._submit(task)
        elif isinstance(answer, JobResult):
            self._keep(task, answer)
        elif isinstance(task.job, GradingJob):
            self._failed(task.digest, answer)

    def _common(self) -> tuple[str, str, dict[str, Any]]:
        return self.grading.assignment.id, self.grading.release, self.grading.options.to_json()

    def _submit(self, task: _Task) -> None:
        self.tasks[self.pool.submit(task.job)] = task

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
        assignment = self.grading.assignment
        name = grader.plain_name(assignment, self.submissions[digest].path)
        report = unchecked(assignment.id, name, status, message, seed=self.grading.public_seed, **more)
        self._commit(digest, JobResult(record.to_dict(report)))

    def _commit(self, digest: str, answer: JobResult) -> None:
        self._add(self.grading.key(digest), answer)
        self.done(digest, answer.record)

    def _commit_speed(self, digest: str, answer: JobResult) -> None:
        if answer.record["status"] == Status.FAULT:  # nothing was measured: it stays pending
            return
        key = self.grading.key(digest)
        self._add(replace(key, machine=str(answer.record["environment"].get("gpu") or "no card")), answer)
        history = self.grading.store.history(key.assignment, digest)
        before = next(r.record for r in reversed(history) if r.key == key)
        self.timed(digest, record.merged(before, answer.record))

    def _add(self, key: ResultKey, answer: JobResult) -> None:
        environment = answer.record["environment"]
        machine = " ".join(filter(None, (str(environment.get("host") or platform.node()), environment.get("gpu_uuid"))))
        kept = {"programs": answer.programs, "fingerprint": answer.fingerprint}
        self.grading.store.add_result(key, answer.record, machine, **kept)
