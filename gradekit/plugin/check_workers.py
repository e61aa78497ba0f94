"""Checks that forks of this process run, with processes of their own for the submission, while it runs the rest.

What passes there, with nothing that a report would tell, counts as it is; anything else is run here as if nobody had
looked at it before. So no verdict, and no word of a report, depends on which process was first.
"""

import contextlib
import pickle
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from gradekit import reuse
from gradekit.compat.hypothesis import strategies
from gradekit.compat.pytest import run_quietly
from gradekit.findings import Check, Outcome
from gradekit.inputs.calls import draws_of
from gradekit.plugin.check_points import claims
from gradekit.plugin.profiles import Limit
from gradekit.plugin.run_state import GradingRun
from gradekit.processes import ForkedProcess
from gradekit.subject.subject import Subject


@dataclass
class CheckWorker:
    """One such process, with the `items` that it was given, in the order in which it runs them."""

    items: Sequence[pytest.Item]
    subject: Subject
    _fork: ForkedProcess | None = None
    _left: list[pytest.Item] = field(default_factory=list)
    _passed: dict[pytest.Item, Check | None] = field(default_factory=dict)

    def start(self, run: GradingRun) -> None:
        """Begins with the first check. Raises OSError or TraceError where there can be no such process."""
        self.subject.start()
        before = reuse.known() if reuse.is_keeping() else None
        self._fork = ForkedProcess(lambda message: self._answer(run, message, before or {}))
        self._left = list(self.items)
        for number in range(len(self.items)):
            self._fork.ask(str(number).encode())
        if before is not None:
            self._fork.ask(b"")

    def take(self) -> tuple[Check, bool]:
        """The next check, and whether it passed with nothing to tell. Raises OSError or EOFError without one."""
        assert self._fork is not None
        return pickle.loads(self._fork.take(Limit.WORKER_SECONDS))

    def passed(self, item: pytest.Item) -> Check | None:
        """The record of a check that has passed there; None where it has to be run here."""
        while item in self._left:
            try:
                check, is_clean = self.take()
            except (OSError, EOFError):
                self.close()
            else:
                self._passed[self._left.pop(0)] = check if is_clean else None
        return self._passed.get(item)

    def close(self) -> None:
        """Ends it; where everything has been taken from it, what it has learned is kept."""
        if self._fork is not None:
            with contextlib.suppress(OSError, EOFError):
                if reuse.is_keeping() and not self._left:
                    reuse.receive(self._fork.take(Limit.WORKER_SECONDS))
            self._fork.end()
        self._left.clear()
        self.subject.close()

    def _answer(self, run: GradingRun, message: bytes, before: reuse.Known) -> bytes:
        """What the fork does: runs the check of that number until an example fails, without looking for a simpler one
        or for a cause; asked for none, it tells what it has learned since `before`."""
        if not message:
            return reuse.learned(before)
        run.subject, run.only_tries = self.subject, True
        run.request = replace(run.request, options=replace(run.request.options, diagnose=False))
        run.checks.clear()
        self.subject.found_in_memory.clear()
        run_quietly(self.items[int(message)])
        (check,) = run.checks
        is_clean = check.outcome is Outcome.PASSED and not self.subject.found_in_memory and not run.faults
        return pickle.dumps((check, is_clean))


class CheckWorkers:
    """All of them for one grading run; the checks with the names `failed` are those that failed last time."""

    def __init__(self, run: GradingRun, failed: Collection[str] = ()) -> None:
        self._run, self._failed = run, failed
        self._workers: list[CheckWorker] = []
        self._first: CheckWorker | None = None

    def look_first(self, items: Sequence[pytest.Item]) -> None:
        """Runs the checks that failed last time before their turn, and tells GradingRun.on_failing which fail again,
        but not where a card takes part, which a fork cannot use. All checks run in their order afterwards: a record
        does not depend on what was graded before."""
        chosen = [item for item in items if item.name in self._failed]
        if self._run.on_failing is None or not chosen or self._run.has_card or self._run.request.programs is not None:
            return
        with contextlib.suppress(Exception):  # whatever it is, the run itself then meets it, too
            self._first = CheckWorker(chosen, self._run.another_subject())
            self._first.start(self._run)
            threading.Thread(target=self._listen, args=(self._first, self._run.on_failing), daemon=True).start()

    def _listen(self, worker: CheckWorker, on_failing: Callable[[str, str], None]) -> None:
        with contextlib.suppress(OSError, EOFError):
            for _ in worker.items:
                check, _ = worker.take()
                if check.outcome is Outcome.FAILED:
                    on_failing(check.title, check.message)

    def share_out(self, items: list[pytest.Item]) -> None:
        """Gives checks away, if that pays, and moves those to the end of `items`: they are asked for last."""
        parts = shared_out(items, self._jobs(items))
        for given in parts[1:]:
            worker = CheckWorker(given, self._run.another_subject())
            self._workers.append(worker)
            try:
                worker.start(self._run)
            except Exception:  # noqa: BLE001  (whatever it is, this process then meets it, too)
                worker.close()
        last = {item for part in parts[1:] for item in part}
        items.sort(key=lambda item: (item in last, claims(item, "assert_memory_clean")))

    def passed(self, item: pytest.Item) -> Check | None:
        """The record of a check that has passed in one of them; not where calls made here have shown more."""
        subject = self._run.subject
        if claims(item, "assert_memory_clean") and subject is not None and subject.found_in_memory:
            return None
        return next((worker.passed(item) for worker in self._workers if item in worker.items), None)

    def close(self) -> None:
        """Ends them."""
        for worker in filter(None, (self._first, *self._workers)):
            worker.close()
        self._workers.clear()

    def _jobs(self, items: Sequence[pytest.Item]) -> int:
        run, options = self._run, self._run.request.options
        alone = options.trivial or options.inputs or run.request.programs is not None or run.has_card
        few = run.profile.name == "quick" or sum(_load([item]) for item in items) < Limit.WORTH_A_WORKER
        return 1 if alone or few else options.jobs


def shared_out(items: Sequence[pytest.Item], jobs: int) -> list[list[pytest.Item]]:
    """The items in so many parts that take about as long, in their order; the first, for this process, has what is
    timed and nothing that answers for all calls. Checks of the same calls stay together."""
    parts: list[list[pytest.Item]] = [[] for _ in range(jobs)]
    loads = [0] * jobs
    groups: dict[Any, list[pytest.Item]] = {}
    for item in items:
        groups.setdefault(_drawn_from(item), []).append(item)
    for group in sorted(groups.values(), key=_load, reverse=True):
        load = _load(group)
        is_last = any(claims(item, "assert_memory_clean") for item in group)
        open_to = range(1 if is_last and jobs > 1 else 0, 1 if load == 0 else jobs)
        place = min(open_to, key=loads.__getitem__)
        loads[place] += load
        parts[place] += group
    order = {item: number for number, item in enumerate(items)}
    return [sorted(part, key=order.__getitem__) for part in parts]


def _drawn_from(item: pytest.Item) -> Any:
    """What tells the calls of a check from those of others."""
    given = [draws_of(strategy) for strategy in strategies(getattr(item, "obj", None)).values()]
    return tuple(given) if given and None not in given else item if given else None


def _load(group: Sequence[pytest.Item]) -> int:
    """About how long checks take that are tried on the same calls, in examples of a call without a gradient."""
    drawn = _drawn_from(group[0])
    if drawn is None:
        return 0
    designs = drawn if isinstance(drawn, tuple) else ()
    proofs = Limit.PROOFS * any(claims(item, "assert_memory_clean") for item in group)
    twice = 1 + any(draws.upstream for draws in designs)  # about as long, where gradients are asked for
    return proofs + twice * (Limit.BESIDE_DESIGN * len(group) + sum(len(draws.design()) for draws in designs))
