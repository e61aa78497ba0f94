"""Times a call of the submission on the card, beside torch: `submission.softmax.timed(...)` ends here.

Runs in the grader's process. The worker runs the submission's program, and never sees an expected value; what its timed
calls returned is judged here, set by set, before any figure counts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from gradekit.engine import traffic
from gradekit.engine.executor import Budget, OverBudget
from gradekit.findings import Cause
from gradekit.inputs.spec import Input
from gradekit.judge.compare import assert_close
from gradekit.judge.failure import Failure
from gradekit.judge.roofline import impossible
from gradekit.judge.speed import Unmeasurable, settled
from gradekit.program import Program
from gradekit.subject.device import Device, NeedsCard
from gradekit.subject.rules import options
from gradekit.subject.timed_call import SIDES, STUDENT, Launched, Rounds, Thresholds, Timed, Work

if TYPE_CHECKING:
    from gradekit.gpu.baselines import Baseline
    from gradekit.gpu.card import Card
    from gradekit.gpu.timing import Turn
    from gradekit.gpu.worker import Prepared, Worker

FIRST = 4.0
"""Wall seconds that the rounds of one call may take at first."""

LONGER = 10.0
"""And in all, where noise leaves it open whether a threshold is reached."""

WHOLE_NUMBERS = 1 << 22
"""Integer inputs of up to so many elements are read when traffic is counted: loops and addresses may depend on them."""


class Impossible(Exception):
    """A figure that the card cannot reach: the measurement is wrong, and a person has to look at it."""


@dataclass(frozen=True)
class SpeedTrial:
    """A call to be timed: its `args` (specs and numbers) and `program`, the torch function that it is measured
    `against`, and `expected`, which gives the Reference of a result as in any other check."""

    entry: str
    args: tuple[Any, ...]
    program: Program
    against: Callable[..., Any]
    expected: Callable[..., Any]
    allow: tuple[str, ...] = ()

    def same(self, other: SpeedTrial) -> bool:
        """Whether the other would measure the same."""
        return self.program == other.program and self.args == other.args and self.against is other.against


def measure(trial: SpeedTrial, device: Device) -> Timed:
    """The call, timed.

    Raises:
        NeedsCard: there is no card, or it could not do it.
        Failure: a result of a timed call is wrong, or a kernel misused the card.
        Unsupported: the engine does not know what a kernel does, so that its time says nothing.
        Impossible: the figures cannot be true.
    """
    card = device.need()
    _only_what_it_wrote(trial)
    from gradekit.gpu.baselines import BaselineError
    from gradekit.gpu.faults import CardFault

    try:
        return _measured(trial, card, device.worker)
    except CardFault as fault:
        raise device.judged(fault, trial.entry) from None
    except BaselineError as error:
        raise NeedsCard(f"torch's side could not be timed here: {error}") from None
    except torch.OutOfMemoryError:
        raise NeedsCard(f"{card.name} has too little memory left: does something else use it?") from None
    except Unmeasurable as error:
        raise NeedsCard(f"{card.name} did not run evenly enough: {error}") from None


def _measured(trial: SpeedTrial, card: Card, worker: Worker) -> Timed:
    from gradekit.gpu.ceilings import measure as ceilings_of
    from gradekit.gpu.replay import touched_bytes
    from gradekit.gpu.timing import sets_for

    sides: list[Baseline] = []
    if card.device.type == "cpu" or trial.program.choices():  # the fastest option is found with the card at rest
        prepared = worker.prepare(trial.program, trial.args, allow=trial.allow)
        sides += _baselines(trial, card, prepared.sets)
    else:
        sets = sets_for(card, touched_bytes(trial.program))
        prepared = worker.prepare(
            trial.program, trial.args, allow=trial.allow, meanwhile=lambda: sides.extend(_baselines(trial, card, sets))
        )
    ceilings = ceilings_of(card)
    rounds = _rounds(worker, prepared, sides, (), {side: () for side in SIDES}, FIRST)
    for number, found in enumerate(worker.results(prepared.id, card.device)):
        _verify(trial, card, number, found)
    timed = Timed(
        trial.entry, trial.args, trial.program, card.name, rounds,
        Launched(prepared.launches, prepared.peak_bytes), work(trial, prepared.chosen), ceilings,
        prepared.option_label, prepared.choices,
        {STUDENT: prepared.seconds} | {side.name: side.compile_seconds for side in sides},
        tuple(_notes(prepared, sides)), functools.partial(_longer, worker, prepared, sides),
        functools.partial(_release, worker, prepared, sides),
    )  # fmt: skip
    _possible(timed, card, prepared.sets)
    return timed


def _notes(prepared: Prepared, sides: Sequence[Baseline]) -> Iterator[str]:
    if prepared.how != "graph":
        yield f"The submission was timed without a CUDA graph, launches included ({prepared.why})."
    yield from (f"{side.name.capitalize()} torch was {side.note}." for side in sides if side.note)


def _release(worker: Worker, prepared: Prepared, sides: Sequence[Baseline]) -> None:
    worker.forget(prepared.id)
    for side in sides:
        side.clock.close()


def _baselines(trial: SpeedTrial, card: Card, sets: int) -> list[Baseline]:
    from gradekit.gpu import baselines
    from gradekit.gpu.inputs import make_set

    made = [make_set(trial.args, number, card.device) for number in range(sets)]
    return [baselines.eager(trial.against, made, card), baselines.compiled(trial.against, made, card)]


def _rounds(
    worker: Worker,
    prepared: Prepared,
    sides: Sequence[Baseline],
    before: Rounds,
    thresholds: Thresholds,
    budget: float,
) -> Rounds:
    from gradekit.gpu.interleaved import TURN, interleave

    def students_turn() -> Turn:
        return worker.turn(prepared.id, milliseconds=TURN)

    turns = {STUDENT: students_turn} | {side.name: functools.partial(side.clock.turn, TURN) for side in sides}
    return interleave(turns, settled(thresholds), before=before, budget=budget).rounds


def _longer(
    worker: Worker, prepared: Prepared, sides: Sequence[Baseline], before: Rounds, thresholds: Thresholds
) -> Rounds:
    return _rounds(worker, prepared, sides, before, thresholds, LONGER)


# --- what the timed calls returned -----------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Held(Input):
    """A spec whose tensor is on the card already: what `expected` gets in place of a test's own."""

    held: torch.Tensor | None = None

    def tensor(self) -> torch.Tensor:
        """The tensor on the card."""
        assert self.held is not None
        return self.held


def _verify(trial: SpeedTrial, card: Card, number: int, found: Sequence[Any]) -> None:
    """Hold what the timed call with set `number` returned against what is expected for that set."""
    with torch.no_grad():
        expected = trial.expected(*_held(trial.args, number, card))
    try:
        assert_close(found, expected)
    except Failure as failure:
        raise failure.naming(f"On {card.name}, in a call that was timed: ") from None


def _held(args: Sequence[Any], number: int, card: Card) -> Iterator[Any]:
    from gradekit.gpu.inputs import make_set

    for spec, value in zip(args, make_set(args, number, card.device), strict=True):
        if isinstance(spec, Input):
            given = (spec.dtype, spec.shape, spec.stride, spec.offset, spec.profile, spec.seed, spec.name)
            assert isinstance(value, torch.Tensor)
            yield Held(*given, held=value)
        else:
            yield value


# --- what it had to do -----------------------------------------------------------------------------------------------


def _only_what_it_wrote(trial: SpeedTrial) -> None:
    """A kernel that reads memory which nobody has written sees what its last call left there, and could skip its work.

    Raises:
        Failure: uninitialized-read.
    """
    for option, _ in options(trial.program):
        counted = _counted(trial, option)
        if counted is not None and counted.unwritten:
            message = f"At the size that is timed, {trial.entry} reads memory that nothing has written."
            raise Failure(Cause.UNINITIALIZED_READ, message, line=counted.unwritten[0])


def work(trial: SpeedTrial, chosen: int | Sequence[int]) -> Work:
    """The traffic and the arithmetic of the call in which the choices take the options `chosen` (see `run_steps`)."""
    least, counted = traffic.least_bytes(trial.program), _counted(trial, chosen)
    dtype = next((arg.dtype for arg in trial.args if isinstance(arg, Input)), "float32")
    if counted is None:
        return Work(least, least, 0.0, dtype)
    return Work(min(least, counted.bytes_moved), counted.bytes_moved, counted.flops, dtype)


def _counted(trial: SpeedTrial, chosen: int | Sequence[int]) -> traffic.Counted | None:
    """None where counting takes too long."""
    values = [_whole_numbers(arg) for arg in trial.args if isinstance(arg, Input)]
    try:
        return traffic.count(trial.program, values, chosen=chosen, budget=Budget(work=5_000_000_000))
    except OverBudget:
        return None


def _whole_numbers(spec: Input) -> torch.Tensor | None:
    floating = getattr(torch, spec.dtype).is_floating_point
    return None if floating or spec.numel > WHOLE_NUMBERS else spec.tensor()


def _possible(timed: Timed, card: Card, sets: int) -> None:
    from gradekit.gpu import ceilings

    def why() -> str | None:
        doing, most = timed.work, timed.ceilings
        return impossible(timed.seconds(), doing.least_bytes, doing.flops, most, dtype=doing.dtype, calls=sets)

    if why() is not None:
        timed.ceilings = ceilings.raised(card, timed.ceilings)
    said = why()
    if said is not None:
        raise Impossible(f"the time measured for {timed.entry} cannot be true: {said}")
