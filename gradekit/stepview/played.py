"""A submission and an example to the record of its steps: plain data, which gradekit.report.steps makes a page of."""

import contextlib
import functools
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from gradekit.assignment import Assignment, of_path
from gradekit.engine import executor
from gradekit.engine.budget import Budget, OverBudget, Unsupported
from gradekit.engine.conditions import USUAL, Conditions, Order
from gradekit.engine.executor import RunResult
from gradekit.engine.host import ForbiddenOp
from gradekit.engine.observer import NOBODY, Owners, coordinates, linear_id
from gradekit.engine.trials import agree
from gradekit.findings import Cause, Check, Finding, Outcome
from gradekit.inputs.as_text import as_data
from gradekit.inputs.spec import Input
from gradekit.judge.compare import show
from gradekit.judge.comparison import Comparison
from gradekit.judge.evidence import UPSTREAM
from gradekit.judge.failure import Failure
from gradekit.judge.reference import Reference, reference
from gradekit.judge.result_map import MOST_COLUMNS, MOST_ROWS
from gradekit.plugin import grade
from gradekit.plugin.check_results import CheckEvidence
from gradekit.program import Program, View
from gradekit.report.text import counted
from gradekit.request import GradingOptions, GradingRequest
from gradekit.sandbox import Tracer
from gradekit.stepview import Limit
from gradekit.stepview.recording import PlayedProgram, PlayRecorder, Tensors
from gradekit.subject import rules
from gradekit.subject.call_spec import call_spec
from gradekit.subject.subject import Call, Subject
from gradekit.submission import Submission, SubmissionError, read

SCHEMA = "gradekit/steps/1"


# --- which call is played, and under which conditions it goes wrong ---------------------------------------------------


Run = Callable[[int, Conditions], RunResult]  # runs the call in one configuration (its option) under conditions


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


# --- the call to its record -------------------------------------------------------------------------------------------


def step_record(
    path: Path, id: str | None, options: GradingOptions, arguments: Sequence[Any] = (),
    program: tuple[int, ...] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The steps of the call of `arguments`, else of the one that fails first in this grading run, or a small one;
    `program` (x, y, z) comes first. Raises SubmissionError where none has a kernel, and AssignmentError."""
    assignment = of_path(path, id)
    if assignment.is_quiz:
        raise SubmissionError(f"{assignment.id} asks questions: there is no kernel to be played.")
    submission = read(path)
    asked = [Played(None, Call(assignment.entry, tuple(arguments)))] if arguments else []
    candidates = asked or _seen_by_checks(GradingRequest(assignment, submission, options))
    return _Playing(assignment, submission, *_to_play(candidates, assignment, submission), program).record()


def _seen_by_checks(request: GradingRequest) -> list[Played]:
    chooser = Chooser()
    report = grade(request, on_evidence=chooser)
    if found := chooser.candidates:
        return found
    failed = next((check.message for check in report.checks if check.message), "no check called it")
    raise SubmissionError(f"No call can be played: {report.message or failed}")


def _to_play(candidates: Sequence[Played], assignment: Assignment, submission: Submission) -> tuple[Played, Program]:
    """The first call of which more than one program of a grid runs, or else the first, with what it is traced to."""
    subject = Subject(submission, assignment, lambda: Tracer(submission, calling=assignment.calling))
    found: list[tuple[Played, Program]] = []
    with contextlib.closing(subject):
        for one in candidates:
            seen, spec = one.call.observation, call_spec(one.call.entry, one.call.args)
            found.append((one, seen.program if seen is not None else subject.program(spec)))
            if one.failure or any(math.prod(launch.grid) > 1 for launch in found[-1][1].launches()):
                return found[-1]
    return found[0]


class _Playing:
    def __init__(
        self, assignment: Assignment, submission: Submission, played: Played, program: Program,
        first: tuple[int, ...] | None,
    ) -> None:  # fmt: skip
        self.assignment, self.submission, self.played = assignment, submission, played
        self.program, self.first = program, first
        args = played.call.args
        self.names = rules.argument_names(args, self.played.call.entry, submission, assignment.lists)
        named = zip(self.names, args, strict=True)
        given = [(name, arg) for name, arg in named if isinstance(arg, (Input, torch.Tensor))]
        self.inputs = [arg.tensor() if isinstance(arg, Input) else arg for _, arg in given]
        self.tensor_names = [name for name, _ in given]
        self.tensors = Tensors(program, self.tensor_names)
        self.owners = Owners()

    def record(self) -> dict[str, Any]:
        """The record of its steps."""
        options = [option for option, _ in rules.options(self.program)]
        try:
            seen = circumstances(self.played.failure, options, functools.partial(self._run, None))
            seen = replace(seen, run=self._run(self.owners, seen.option, seen.conditions))
            chosen = list(dict.fromkeys([*self._by_hand(), *self._at_fault(seen), *self._all()]))[: Limit.PROGRAMS]
            if not chosen:
                raise SubmissionError(f"{self.played.call.entry} launches no program of a kernel.")
            recorder = PlayRecorder(chosen, self.tensors, wrong_places(self.program, seen))
            self._run(recorder, seen.option, seen.conditions)
        except (OverBudget, Unsupported) as error:
            raise SubmissionError(f"The call cannot be played: {error}.") from None
        except ForbiddenOp as error:
            said = f"This computes with torch ({error.op}) where the assignment asks for a Triton kernel."
            raise SubmissionError(said) from None
        programs = [recorder.programs[key] for key in chosen if key in recorder.programs]
        return self._page(seen, programs)

    def _run(self, observer: Any, option: int, conditions: Conditions) -> RunResult:
        return executor.run(
            self.program, self.inputs, option=option, allow=self.assignment.allow, budget=Budget(Limit.WORK),
            names=self.tensor_names, conditions=conditions, observer=observer,
        )  # fmt: skip

    # --- which programs ----------------------------------------------------------------------------------------------

    def _by_hand(self) -> Iterator[tuple[int, int]]:
        if self.first is None:
            return
        ids = (linear_id(self.first, grid) for grid in self.owners.grids)
        found = [(launch, id) for launch, id in enumerate(ids) if id is not None]
        if not found:
            grids = ", ".join(map(str, self.owners.grids))
            raise SubmissionError(f"There is no program {self.first}: the grids are {grids}.")
        yield from found

    def _at_fault(self, seen: Circumstances) -> Iterator[tuple[int, int]]:
        for finding in seen.findings:
            if finding.launch < len(self.owners.grids):
                for id in finding.programs:
                    if (linear := linear_id(id, self.owners.grids[finding.launch])) is not None:
                        yield finding.launch, linear
            if finding.cause is Cause.UNWRITTEN_OUTPUT:
                yield from self._beside(finding.elements[0])
        for storage, wrong in wrong_places(self.program, seen).items():
            owners = (self.owners.owner(storage, position) for position in wrong.nonzero().view(-1)[:4096].tolist())
            yield from list(dict.fromkeys(owner for owner in owners if owner is not None))[:4]

    def _beside(self, element: Sequence[int]) -> Iterator[tuple[int, int]]:
        """The program that wrote the last element before one that nobody wrote."""
        for view in (result for result in self.program.results if isinstance(result, View)):
            position = view.offset + sum(i * s for i, s in zip(element, view.stride, strict=False))
            before = self.owners.program.get(view.storage, torch.empty(0))[:position]
            written = (before != NOBODY).nonzero().view(-1)
            if written.numel():
                owner = self.owners.owner(view.storage, int(written[-1]))
                yield from [owner] if owner else []

    def _all(self) -> Iterator[tuple[int, int]]:
        yield from ((launch, 0) for launch, grid in enumerate(self.owners.grids[: Limit.PROGRAMS]) if math.prod(grid))
        for launch, grid in enumerate(self.owners.grids):
            yield from ((launch, id) for id in range(min(math.prod(grid), Limit.PROGRAMS)))

    # --- the record --------------------------------------------------------------------------------------------------

    def _page(self, seen: Circumstances, programs: Sequence[PlayedProgram]) -> dict[str, Any]:
        kept, size = list[dict[str, Any]](), 0
        for played in programs:
            data = self._program_data(played)
            size += len(json.dumps(data))
            if kept and size > Limit.BYTES:
                break
            kept.append(data)
        call, check = self.played.call, self.played.check
        launches = zip(self.owners.kernels, self.owners.grids, strict=True)
        return {
            "schema": SCHEMA, "assignment": self.assignment.id, "path": self.submission.path, "entry": call.entry,
            "cells": self.submission.facts()["cells"],
            "check": check.title if check else "The call that was asked for", "message": check.message if check else "",
            "blamed": check.source.line if check and check.source else None,
            "circumstances": seen.words, "inputs": [as_data(a, n) for a, n in zip(call.args, self.names, strict=True)],
            "source": self.submission.text.split("\n"), "tensors": [drawn.as_data() for drawn in self.tensors.drawn],
            "launches": [{"kernel": kernel, "grid": list(grid)} for kernel, grid in launches],
            "programs": kept, "wrong": self._wrong(seen), "notes": list(self._notes(seen, kept, programs)),
        }  # fmt: skip

    def _program_data(self, played: PlayedProgram) -> dict[str, Any]:
        grid = self.owners.grids[played.launch]
        steps = played.steps
        return {
            "launch": played.launch, "id": list(coordinates(played.program, grid)), "count": played.count,
            "steps": steps, "first_wrong": next((n for n, step in enumerate(steps) if _is_wrong(step)), None),
        }  # fmt: skip

    def _wrong(self, seen: Circumstances) -> dict[str, Any] | None:
        """The first wrong element of the result, what it is and what it should be."""
        comparison = seen.comparison
        if comparison is None:
            return None
        index = tuple(comparison.wrong.nonzero()[0].tolist())
        return {
            "index": list(index), "got": show(comparison.actual[index]), "count": comparison.wrong_count,
            "expected": show(comparison.reference.rounded[index]), "total": comparison.wrong.numel(),
        }  # fmt: skip

    def _notes(
        self, seen: Circumstances, kept: Sequence[Mapping[str, Any]], programs: Sequence[PlayedProgram]
    ) -> Iterator[str]:
        every = sum(map(math.prod, self.owners.grids))
        if len(kept) < every:
            yield (
                f"{counted(len(kept), 'program')} of {every} can be played here, those at fault first; "
                "`gradekit view --program X,Y,Z` plays another."
            )
        if any(played.count > len(played.steps) for played in programs):
            first, last = Limit.FIRST_STEPS, Limit.LAST_STEPS
            yield f"Of a long program, the first {first} and the last {last} steps are kept."
        if any("at_rows" in value for data in kept for step in data["steps"] for value in step["values"]):
            yield (
                f"A tile of more than {MOST_ROWS} rows or {MOST_COLUMNS} columns ({Limit.ROW} in a single row) is "
                "drawn with some of them left out. Shapes, extremes and counts are those of the whole tile."
            )
        if self.played.failure is not None and seen.comparison is None and not seen.findings:
            yield "What the check saw did not happen again in this run, which is played as it was."


def _is_wrong(step: Mapping[str, Any]) -> bool:
    return any("wrong" in value or "outside" in value for value in step["values"])
