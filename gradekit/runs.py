"""Runs of traced calls: under every configuration that computes something else, and never the same one twice.

Runs in the grader's process, on data alone.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from gradekit import rules
from gradekit.engine import run as engine
from gradekit.findings import Cause, Finding
from gradekit.judge.failure import Failure
from gradekit.program import Program
from gradekit.strategies import Input

if TYPE_CHECKING:
    from gradekit.assignment import Assignment
    from gradekit.submission import Submission

REMEMBERED_BYTES = 128 << 20
"""Results of earlier runs that are kept for the next check: the whole grader must stay under 1.5 GiB."""

HURRY = 200_000
"""Steps that a run gets once another has used up a whole budget, that no report takes minutes. Steps, because a right
call must not depend on how busy the machine is: the longest of all right submissions in tests/course takes 70,000."""

Mutation = Callable[[Sequence[torch.Tensor], Sequence[Any]], Sequence[torch.Tensor]]
"""Makes the results that are to be judged from the expected ones and the input tensors: see gradekit.judge.mutants."""


@dataclass(frozen=True, eq=False)
class Observation:
    """What one call of the entry showed.

    `inputs` are the arguments as the test gave them, `results` the tensors and numbers that the call returned, in
    order. `findings` are those of every configuration. `variants` are the same call under the other configurations of
    an autotuned kernel, each with its `label`: they must be right too.
    """

    entry: str
    inputs: tuple[Any, ...]
    results: tuple[Any, ...]
    findings: tuple[Finding, ...]
    counters: Any
    program: Program
    prints: tuple[str, ...] = ()
    label: str = ""
    variants: tuple[Observation, ...] = ()
    mutate: Callable[[Sequence[torch.Tensor]], Sequence[torch.Tensor]] | None = None

    @property
    def tensor(self) -> torch.Tensor:
        """The result, where the call returns exactly one tensor.

        Raises:
            Failure: it returned something else.
        """
        if len(self.results) != 1 or not isinstance(self.results[0], torch.Tensor):
            raise Failure(Cause.WRONG_TYPE, f"{self.entry} returns {self.program.returned}, not one tensor.")
        return self.results[0]


@dataclass(frozen=True)
class Case:
    """A call to be run: `args` as the test gave them, `tensors` those among them, and the `program` that it became.

    `wanted` are the positions of the arguments whose gradients are its results; then the gradient of the call's own
    result is the last of `args`.
    """

    entry: str
    args: tuple[Any, ...]
    tensors: list[torch.Tensor]
    program: Program
    wanted: tuple[int, ...] = ()


class Runs:
    """The runs of one submission. With `mutate`, the judge sees a trivial wrong result in place of each."""

    def __init__(self, submission: Submission, assignment: Assignment, mutate: Mutation | None = None) -> None:
        self.submission = submission
        self.assignment = assignment
        self.mutate = mutate
        self._seen: collections.OrderedDict[str, Observation | Failure] = collections.OrderedDict()
        self._remembered = 0
        self._overdue = False

    def known(self, entry: str, args: tuple[Any, ...], wanted: tuple[int, ...] = ()) -> Observation | None:
        """The observation of an earlier run of the same call, if it is remembered.

        Raises:
            Failure: that run was stopped, or broke a rule.
        """
        key = _key(entry, args, wanted)
        if key not in self._seen:
            return None
        self._seen.move_to_end(key)
        outcome = self._seen[key]
        if isinstance(outcome, Failure):
            raise outcome.with_traceback(None)
        return outcome

    def run(self, case: Case) -> Observation:
        """The observation of `case`.

        Raises:
            Failure: the program breaks a rule, or used up its budget.
            Unsupported: the engine cannot know what a kernel does.
        """
        try:
            self._hold_against_rules(case)
            outcome = self._in_all_configurations(case)
        except Failure as failure:
            self._remember(case, failure)
            raise
        self._remember(case, outcome)
        return outcome

    def _hold_against_rules(self, case: Case) -> None:
        allow = self.assignment.allow
        if not case.wanted:
            rules.check_program(case.program, case.entry, allow, self.submission)
            return
        names = rules.argument_names(case.args, case.entry, self.submission)
        rules.check_gradients(case.program, case.entry, allow, [names[position] for position in case.wanted])

    def _in_all_configurations(self, case: Case) -> Observation:
        first, *others = [self._once(case, option, label) for option, label in rules.options(case.program)]
        findings = first.findings + tuple(_in_configuration(f, o.label) for o in others for f in o.findings)
        return replace(first, findings=findings, variants=tuple(others))

    def _once(self, case: Case, option: int, label: str) -> Observation:
        named = zip(rules.argument_names(case.args, case.entry, self.submission), case.args, strict=True)
        names = [name for name, arg in named if isinstance(arg, (Input, torch.Tensor))]
        with rules.within_budget(case.entry, label):
            run = engine.run(
                case.program, case.tensors,
                option=option, allow=self.assignment.allow, budget=self._budget(), names=names,
            )  # fmt: skip
        return Observation(
            case.entry, case.args, tuple(run.results), tuple(run.findings), run.counters, case.program,
            tuple(run.prints), label, mutate=self._mutation(case),
        )  # fmt: skip

    def _budget(self) -> engine.Budget:
        return engine.Budget(steps=HURRY) if self._overdue else engine.Budget()

    def _mutation(self, case: Case) -> Callable[[Sequence[torch.Tensor]], Sequence[torch.Tensor]] | None:
        mutate = self.mutate
        return None if mutate is None else lambda expected: mutate(expected, case.tensors)

    def _remember(self, case: Case, outcome: Observation | Failure) -> None:
        self._overdue |= isinstance(outcome, Failure) and outcome.cause is Cause.BUDGET_EXCEEDED
        key = _key(case.entry, case.args, case.wanted)
        if not key:
            return
        self._seen[key] = outcome
        self._remembered += _weight(outcome)
        while len(self._seen) > 1 and self._remembered > REMEMBERED_BYTES:
            self._remembered -= _weight(self._seen.popitem(last=False)[1])


def _key(entry: str, args: tuple[Any, ...], wanted: tuple[int, ...]) -> str:
    """What tells one run from another; empty where a tensor without a spec is among the arguments."""
    if any(isinstance(arg, torch.Tensor) for arg in args):
        return ""
    first = {id(arg): position for position, arg in reversed(list(enumerate(args))) if isinstance(arg, Input)}
    return repr([entry, wanted, *((arg, first.get(id(arg))) for arg in args)])


def _in_configuration(finding: Finding, label: str) -> Finding:
    return replace(finding, message=f"With the configuration {label}: {finding.message}")


def _weight(outcome: Observation | Failure) -> int:
    if isinstance(outcome, Failure):
        return 0
    own = sum(r.numel() * r.element_size() for r in outcome.results if isinstance(r, torch.Tensor))
    return own + sum(map(_weight, outcome.variants))
