"""A look at the checks that failed last time, in a fork of the grader, before it is their turn.

It tells whoever watches what fails again, and nothing else: the checks run in their order afterwards, as if nobody had
looked, so that a record does not depend on what was graded before.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gradekit.compat.pytest import run_quietly
from gradekit.findings import Outcome
from gradekit.plugin.run_state import GradingRun
from gradekit.processes import ForkedProcess

if TYPE_CHECKING:
    from gradekit.subject.subject import Subject

PATIENCE = 600.0


class FirstLook:
    """The look at those of a run's checks that have `names`, if somebody watches (`GradingRun.on_failing`)."""

    def __init__(self, run: GradingRun, names: Collection[str] = ()) -> None:
        self._run, self._names = run, names
        self._fork: ForkedProcess | None = None
        self._subject: Subject | None = None

    def begin(self, items: Sequence[pytest.Item]) -> None:
        """Starts it, if there is anything to look at: not where a card takes part, for a fork cannot use it."""
        chosen = [item for item in items if item.name in self._names]
        if self._run.on_failing is None or not chosen or self._run.has_card or self._run.request.programs is not None:
            return
        with contextlib.suppress(Exception):  # whatever it is, the run itself then meets it, too
            self._subject = self._run.another_subject()
            self._subject.start()
            self._fork = ForkedProcess(lambda message: self._answer(chosen[int(message)]))
            for number in range(len(chosen)):
                self._fork.ask(str(number).encode())
            threading.Thread(target=self._listen, args=(self._fork, len(chosen)), daemon=True).start()

    def close(self) -> None:
        """Ends it."""
        if self._fork is not None:
            self._fork.end()
        if self._subject is not None:
            self._subject.close()

    def _listen(self, fork: ForkedProcess, count: int) -> None:
        with contextlib.suppress(OSError, EOFError):
            for _ in range(count):
                said = json.loads(fork.take(PATIENCE))
                if said and self._run.on_failing is not None:
                    self._run.on_failing(*said)

    def _answer(self, item: pytest.Item) -> bytes:
        """What the fork does: runs a check until an example fails, without looking for a simpler one or for a cause."""
        run = self._run
        run.subject, run.only_tries = self._subject, True
        run.request = replace(run.request, options=replace(run.request.options, diagnose=False))
        run.checks.clear()
        run_quietly(item)
        (check,) = run.checks
        return json.dumps([check.title, check.message] if check.outcome is Outcome.FAILED else []).encode()
