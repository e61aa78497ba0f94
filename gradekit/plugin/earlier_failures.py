"""What failed last time, looked at again while the checks run in their order: in a fork of the grader, with a process
of its own for the submission."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import pytest

from gradekit.compat.pytest import run_quietly
from gradekit.findings import Outcome
from gradekit.plugin.profiles import Limit
from gradekit.plugin.run_state import GradingRun
from gradekit.processes import ForkedProcess
from gradekit.subject.subject import Subject


class FirstLook:
    """Runs the checks with `names`, which failed last time, before their turn, and tells a listener
    (`GradingRun.on_failing`) which fail again. Nothing else comes of it: all checks run in their order afterwards, so
    that a record does not depend on what was graded before."""

    def __init__(self, run: GradingRun, names: Collection[str] = ()) -> None:
        self._run, self._names = run, names
        self._subject: Subject | None = None
        self._fork: ForkedProcess | None = None

    def begin(self, items: Sequence[pytest.Item]) -> None:
        """Starts it, if there is anything to look at: not where a card takes part, for a fork cannot use it."""
        chosen = [item for item in items if item.name in self._names]
        if self._run.on_failing is None or not chosen or self._run.has_card or self._run.request.programs is not None:
            return
        with contextlib.suppress(Exception):  # whatever it is, the run itself then meets it, too
            self._subject = self._run.another_subject()
            self._subject.start()
            self._fork = ForkedProcess(lambda number: self._said(chosen[int(number)]))
            for number in range(len(chosen)):
                self._fork.ask(str(number).encode())
            arguments = (self._fork, len(chosen), self._run.on_failing)
            threading.Thread(target=_listen, args=arguments, daemon=True).start()

    def close(self) -> None:
        """Ends it."""
        if self._fork is not None:
            self._fork.end()
        if self._subject is not None:
            self._subject.close()

    def _said(self, item: pytest.Item) -> bytes:
        """What the fork does: runs a check until an example fails, without looking for a simpler one or for a cause.
        The title and the message of one that fails, as JSON."""
        run = self._run
        run.subject, run.only_tries = self._subject, True
        run.request = replace(run.request, options=replace(run.request.options, diagnose=False))
        run.checks.clear()
        run_quietly(item)
        (check,) = run.checks
        return json.dumps([check.title, check.message] if check.outcome is Outcome.FAILED else []).encode()


def _listen(fork: ForkedProcess, count: int, on_failing: Callable[[str, str], None]) -> None:
    with contextlib.suppress(OSError, EOFError):
        for _ in range(count):
            if said := json.loads(fork.take(Limit.ANSWER_SECONDS)):
                on_failing(*said)
