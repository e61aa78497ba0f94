"""Grades what has no result yet: each distinct submission once, by the graders of a pool, and what waits for a card there.

This module only says what to run, and commits each result when it is known. It may be killed at any moment; what the
store has is never run again. What fails for a reason of a machine's is handed out again; a student's failure is not.
"""

from __future__ import annotations

import base64
import platform
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, replace
from typing import Any

from gradekit.assignment import Assignment
from gradekit.batch import keys
from gradekit.batch.grader import Graded, GraderFailed, Job, SpeedJob
from gradekit.batch.intake import HandIn
from gradekit.batch.lanes import merged, wants_card
from gradekit.batch.pool import Pool, graded
from gradekit.batch.store import Key, Store
from gradekit.checking import unchecked
from gradekit.findings import Cause, Status
from gradekit.report import record

ENOUGH = 2
"""The level of isolation that a class is graded at unless staff say otherwise: nothing beside the grader can be read."""

TRIES = 2
"""How often a submission is tried where the grader, and not the submission, fails."""

LOSSES = 6
"""How often a submission is handed out again where the machine that had it was lost."""

PULSE = 5.0
"""Seconds after which it is looked whether somebody still works on what is awaited."""

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


def _silent(digest: str, found: Mapping[str, Any]) -> None:
    """Says nothing."""


def grade(
    store: Store,
    order: Order,
    submissions: Mapping[str, HandIn],
    pool: Pool,
    done: Done = _silent,
    timed: Done = _silent,
) -> None:
    """Grade `submissions` (by digest) and commit each result; one bad submission never stops the rest.

    `done` is told of each that is graded, `timed` of each whose speed a card has measured.

    Where the pool has cards, what of a result waits for one is measured there; so is what waits of earlier results (see
    `wanting_cards`), whose submissions need not be graded again.
    """
    work = _Work(store, order, submissions, pool, done, timed)
    for digest, hand_in in submissions.items():
        work.begin(digest, hand_in)
    if pool.has_cards():
        for digest in wanting_cards(store, order):
            if digest not in submissions:
                work.time(digest)
    work.end()


def wanting_cards(store: Store, order: Order) -> list[str]:
    """The submissions of whose newest result a part waits for a card."""
    return [digest for digest, found in records(store, order).items() if wants_card(found)]


def records(store: Store, order: Order) -> dict[str, dict[str, Any]]:
    """The newest record of every submission; what was measured on a card is in its place."""
    newest = store.newest(order.assignment.id, order.release, order.seed)
    found = {digest: dict(r.record) for (digest, machine), r in newest.items() if machine == order.machine}
    for (digest, machine), result in newest.items():
        if machine != order.machine and digest in found:
            found[digest] = merged(found[digest], result.record)
    return found


@dataclass
class _Task:
    """A job for a submission: how often a grader failed at it, and how often a machine was lost with it."""

    digest: str
    job: Job | SpeedJob
    tries: int = 0
    losses: int = 0


class _Work:
    """All that is under way."""

    def __init__(
        self, store: Store, order: Order, submissions: Mapping[str, HandIn], pool: Pool, done: Done, timed: Done
    ) -> None:
        self.store, self.order, self.submissions, self.pool = store, order, submissions, pool
        self.done, self.timed = done, timed
        self.release = order.release
        self.tasks: dict[Future[str], _Task] = {}

    def begin(self, digest: str, hand_in: HandIn) -> None:
        """Have a submission graded; one that cannot be read has its result at once."""
        if hand_in.problem:
            self._commit(digest, Graded(unreadable(self.order, hand_in)))
            return
        try:
            content = base64.b64encode(keys.content(hand_in.path)).decode()
        except (OSError, keys.TooLarge) as error:
            self._commit(digest, Graded(fault(self.order, hand_in, error)))
            return
        order, name = self.order, keys.plain_name(self.order.assignment, hand_in.path)
        self._submit(_Task(digest, Job(
            order.assignment.id, name, content, self.release, order.seed, order.profile, order.hidden, order.isolation
        )))  # fmt: skip

    def time(self, digest: str) -> None:
        """Have the calls of a graded submission timed that wait for a card, if they were kept."""
        order = self.order
        programs = self.store.programs(order.assignment.id, digest, self.release, order.seed)
        if programs:
            name = "submission" + order.assignment.suffix
            self._submit(_Task(digest, SpeedJob(
                order.assignment.id, name, programs, self.release, order.seed, order.profile, order.hidden
            )))  # fmt: skip

    def end(self) -> None:
        """Take results as they come, until there are none to come."""
        while self.tasks:
            ready, waiting = wait(list(self.tasks), PULSE, FIRST_COMPLETED)
            for future in [*ready, *(future for future in waiting if self.pool.is_lost(future))]:
                self._take(self.tasks.pop(future), future)

    def _submit(self, task: _Task) -> None:
        self.tasks[self.pool.submit(task.job)] = task

    def _take(self, task: _Task, future: Future[str]) -> None:
        try:
            answer = graded(future.result(0))
        except GraderFailed as error:
            task.tries += 1
            self._again(task, error, task.tries < TRIES)
        except Exception as error:  # noqa: BLE001  # a lost worker, a lost scheduler: not the grader's, nor the student's
            task.losses += 1
            self._again(task, error, task.losses < LOSSES)
        else:
            task.tries += 1
            if answer.record["status"] == Status.FAULT and task.tries < TRIES:
                self._submit(task)
            else:
                self._keep(task, answer)

    def _again(self, task: _Task, error: Exception, hopeful: bool) -> None:
        if hopeful:
            self._submit(task)
        elif isinstance(task.job, Job):
            self._commit(task.digest, Graded(fault(self.order, self.submissions[task.digest], error)))

    def _keep(self, task: _Task, answer: Graded) -> None:
        if isinstance(task.job, SpeedJob):
            self._commit_speed(task.digest, answer)
            return
        self._commit(task.digest, answer)
        if wants_card(answer.record) and self.pool.has_cards():
            self.time(task.digest)

    def _commit(self, digest: str, answer: Graded) -> None:
        self._add(self.order.key(digest), answer)
        self.done(digest, answer.record)

    def _commit_speed(self, digest: str, answer: Graded) -> None:
        if answer.record["status"] == Status.FAULT:  # nothing was measured: it stays pending
            return
        card = str(answer.record["environment"].get("gpu") or "no card")
        self._add(replace(self.order.key(digest), machine=card), answer)
        history = self.store.history(self.order.assignment.id, digest)
        before = next(r.record for r in reversed(history) if r.key == self.order.key(digest))
        self.timed(digest, merged(before, answer.record))

    def _add(self, key: Key, answer: Graded) -> None:
        host = str(answer.record["environment"].get("host") or platform.node())
        uuid = answer.record["environment"].get("gpu_uuid")
        self.store.add_result(
            key, answer.record, f"{host} {uuid}" if uuid else host, programs=answer.programs,
            fingerprint=answer.fingerprint,
        )  # fmt: skip


def unreadable(order: Order, hand_in: HandIn) -> dict[str, Any]:
    """The record of a hand-in in which no submission can be found."""
    return _unchecked(order, hand_in, Status.REJECTED, hand_in.problem, cause=Cause.UNREADABLE)


def fault(order: Order, hand_in: HandIn, error: BaseException) -> dict[str, Any]:
    """The record of a submission that gradekit failed to grade."""
    return _unchecked(order, hand_in, Status.FAULT, f"{type(error).__name__}: {error}")


def _unchecked(order: Order, hand_in: HandIn, status: Status, message: str, **more: Any) -> dict[str, Any]:
    name = keys.plain_name(order.assignment, hand_in.path)
    return record.to_dict(unchecked(order.assignment.id, name, status, message, seed=order.seed, **more))
