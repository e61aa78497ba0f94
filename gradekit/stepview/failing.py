"""Which call of a submission is played, and under which conditions it goes wrong."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import torch

from gradekit.engine.budget import OverBudget
from gradekit.engine.conditions import USUAL, Conditions, Order
from gradekit.engine.executor import RunResult
from gradekit.engine.trials import agree
from gradekit.findings import Cause, Check, Finding, Outcome
from gradekit.inputs.spec import Input
from gradekit.judge.comparison import Comparison
from gradekit.judge.evidence import UPSTREAM
from gradekit.judge.failure import Failure
from gradekit.judge.reference import Reference, reference
from gradekit.program import Program, View
from gradekit.stepview import Limit
from gradekit.subject.subject import Call

if TYPE_CHECKING:
    from gradekit.plugin.check_results import CheckEvidence

Run = Callable[[int, Conditions], RunResult]
"""Runs the call in one configuration (its option) under conditions."""


@dataclass(frozen=True)
class Played:
    """A call to be played; `check` made it (None: somebody asked for it), and `failure` is what it showed."""

    check: Check | None
    call: Call
    failure: Failure | None = None


@dataclass
class Chooser:
    """Listens to a grading run, and keeps the call that is worth playing: the first that fails, or a small one."""

    failing: Played | None = None
    passing: list[Played] = field(default_factory=list)

    def __call__(self, check: Check, evidence: CheckEvidence, error: BaseException | None) -> None:
        """A check has ended."""
        call, error = evidence.call, evidence.repeated or error
        if call is None:
            return
        if check.outcome is Outcome.FAILED and isinstance(error, Failure):
            mine = Played(check, call, error)
            self.failing = self.failing or (mine if self.playable(mine) else None)
        elif check.outcome is Outcome.PASSED:
            self.passing += [Played(check, Call(call.entry, inputs)) for inputs, _ in evidence.ran]
            self.passing.append(Played(check, call))

    def playable(self, played: Played) -> bool:
        """Whether it is known what was called: of a backward pass, the observation has it."""
        names = [arg.name for arg in played.call.args if isinstance(arg, Input)]
        return played.call.observation is not None or UPSTREAM not in names

    @property
    def candidates(self) -> list[Played]:
        """The first call that failed; else the smallest that is not dull, then each twice as large at least."""
        found = [self.failing] if self.failing else sorted(filter(self.playable, self.passing), key=_dullness)
        kept = found[:1]
        for one in found:
            kept += [one] if 2 * sum(_sizes(kept[-1])) <= sum(_sizes(one)) <= Limit.LARGE else []
        return kept


def _sizes(played: Played) -> list[int]:
    return [math.prod(arg.shape) for arg in played.call.args if isinstance(arg, (Input, torch.Tensor))]


def _dullness(played: Played) -> tuple[bool, int, int]:
    shapes = [arg.shape for arg in played.call.args if isinstance(arg, (Input, torch.Tensor))]
    flat = sum(size == 1 for shape in shapes for size in shape)
    return max(_sizes(played), default=0) < Limit.DULL, flat, sum(_sizes(played))


@dataclass(frozen=True)
class Circumstances:
    """How the call is played, what came of it, and what is wrong: `comparison` of a `result`, or `findings`."""

    option: int
    conditions: Conditions
    run: RunResult
    comparison: Comparison | None = None
    result: int = 0
    findings: tuple[Finding, ...] = ()

    @property
    def words(self) -> str:
        """What is not as usual, as the beginning of a sentence; empty where all is."""
        if self.conditions.order is not Order.ASCENDING:
            return f"With the programs {self.conditions.order.value}"
        if self.conditions.tuning:
            return "In the autotuner's first call, after its other configurations"
        return "With a large number in lanes that a mask leaves undefined" if self.conditions.filled else ""


def circumstances(failure: Failure | None, options: Sequence[int], run: Run) -> Circumstances:
    """The first option and conditions under which the call fails so, or the usual ones. Raises OverBudget."""
    usual = Circumstances(options[0], USUAL, run(options[0], USUAL))
    if failure is None:
        return usual
    for option, conditions in _to_try(failure, options):
        try:
            done = usual.run if (option, conditions) == (options[0], USUAL) else run(option, conditions)
        except OverBudget:
            continue
        expected = usual.run if conditions.filled else None
        found = _wrong(failure, Circumstances(option, conditions, done), expected)
        if found is not None:
            return found
    return usual


def _to_try(failure: Failure, options: Sequence[int]) -> Iterator[tuple[int, Conditions]]:
    if failure.cause is Cause.UNDEFINED_LANES:
        yield options[0], Conditions(filled=True)
    orders = [Conditions(order) for order in Order]
    for conditions in (*orders, Conditions(tuning=True)):
        yield from ((option, conditions) for option in options)


def _wrong(failure: Failure, seen: Circumstances, usual: RunResult | None) -> Circumstances | None:
    """`seen` with what is wrong about it; None where it is not what `failure` says."""
    known = failure.comparison
    if usual is None and known is None:
        mine = tuple(finding for finding in seen.run.findings if finding.cause is failure.cause)
        return replace(seen, findings=mine) if mine else None
    for number, result in enumerate(seen.run.results):
        if isinstance(result, torch.Tensor):
            wanted = _changed(result, usual.results[number]) if usual else known and _seen_again(result, known)
            comparison = Comparison(result, wanted) if wanted else None
            if comparison and comparison.wrong_count:
                return replace(seen, comparison=comparison, result=number)
    return None


def _seen_again(result: torch.Tensor, known: Comparison) -> Reference | None:
    """What a result should be that is what was compared before."""
    is_alike = (result.shape, result.dtype) == (known.actual.shape, known.actual.dtype)
    return known.reference if is_alike and bool(agree(result, known.actual).all()) else None


def _changed(result: torch.Tensor, usual: object) -> Reference | None:
    if not isinstance(usual, torch.Tensor) or bool(agree(usual, result).all()):
        return None
    return reference(lambda value: value, usual)


def wrong_places(program: Program, seen: Circumstances) -> dict[int, torch.Tensor]:
    """By storage, the elements that end up wrong: bool for each element of the storage, in units of its result."""
    if seen.comparison is None:
        return {}
    views = [result for result in program.results if isinstance(result, View)]
    view, wrong = views[seen.result], seen.comparison.wrong
    marked = torch.zeros(max(view.reach, 1), dtype=torch.bool)
    marked.as_strided(view.shape, view.stride, view.offset)[wrong] = True
    return {view.storage: marked}
