"""What a test says about speed, on what was timed on a card:

    timed = submission.softmax.timed(x, against=torch_softmax, expected=expected)
    assert_speed(timed, at_least(1.5, "eager"), at_least(0.95, "compiled", some_from=0.7))

A side is what it is measured against: "eager" is torch as it is, "compiled" the same function under torch.compile.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from gradekit.credit import award
from gradekit.engine import traffic
from gradekit.engine.budget import Budget, OverBudget
from gradekit.findings import Cause
from gradekit.inputs.spec import Input
from gradekit.judge.compare import assert_close
from gradekit.judge.failure import Failure
from gradekit.judge.speed import Ceilings, Ratio, Round, Unmeasurable, Verdict, decide, impossible, ratio, seconds
from gradekit.observations import Counters
from gradekit.program import Program
from gradekit.report.speed_sentences import SIDES as SIDE_NAMES
from gradekit.report.speed_sentences import duration
from gradekit.subject import Limit
from gradekit.subject.device import Device, NeedsCard
from gradekit.subject.rules import options

if TYPE_CHECKING:
    from gradekit.gpu.baselines import Baseline
    from gradekit.gpu.card import Card
    from gradekit.gpu.worker import Prepared, Worker

STUDENT = "student"
SIDES = ("eager", "compiled")

Rounds = Sequence[Round]
Thresholds = Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Work:
    """`least_bytes` with every element moved once, `bytes_moved` by kernels, `flops` on numbers of `dtype`."""

    least_bytes: float
    bytes_moved: float
    flops: float
    dtype: str


@dataclass
class Timed:
    """A call that was timed on `card`, with right results; its `rounds` grow with `measure_longer`.

    `configuration` is the fastest of an autotuned kernel (`choices` has the seconds of all), `compile_seconds` what
    compiling took for each side, outside of all timing. `cards` has, by a part of a card's name and by side, the
    share of a test's factor that is asked for there. `notes` are what a reader must know of how it was timed.
    `compiled` is how many times as fast as eager torch the compiled function was on this card before; it stands for
    rounds of that side until `measure_longer` has some. `release` gives back what the card holds for it.
    """

    entry: str
    args: tuple[Any, ...]
    program: Program
    card: str
    rounds: Rounds
    counters: Counters
    work: Work
    ceilings: Ceilings
    configuration: str = ""
    choices: Mapping[str, float] = field(default_factory=dict)
    compile_seconds: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    longer: Callable[[Rounds, Thresholds], Rounds] = lambda rounds, thresholds: rounds
    release: Callable[[], None] = lambda: None
    verdicts: list[dict[str, Any]] = field(default_factory=list)
    cards: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    compiled: Ratio | None = None

    @property
    def size(self) -> str:
        """The inputs' shapes and dtypes, as messages name them: "[8192, 4096] float32"."""
        specs = [arg for arg in self.args if isinstance(arg, Input)]
        shapes = dict.fromkeys(str(list(spec.shape)) for spec in specs)
        return f"{' and '.join(shapes)} {' and '.join(dict.fromkeys(spec.dtype for spec in specs))}"

    def seconds(self, side: str = STUDENT) -> float:
        """The typical device seconds of one call."""
        if self.is_measured(side):
            return seconds(self.rounds, side)
        assert self.compiled is not None
        return seconds(self.rounds, "eager") / self.compiled.value

    def ratio(self, side: str) -> Ratio:
        """How many times as fast as `side` the submission is."""
        if self.is_measured(side):
            return ratio(self.rounds, side)
        assert self.compiled is not None
        return ratio(self.rounds, "eager").beside(self.compiled)

    def is_measured(self, side: str) -> bool:
        """Whether the rounds have that side; of the compiled one it may be known what it was before."""
        return side in self.rounds[0].seconds

    def measure_longer(self, thresholds: Thresholds) -> None:
        """More rounds, within the budget, until it is clear on which side of the `thresholds` ratios lie."""
        self.rounds = self.longer(self.rounds, thresholds)


# --- what is asked for -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Requirement:
    """To be `factor` times as fast as `side`; from `some_from` times on, it earns some of the points."""

    factor: float
    side: str
    some_from: float | None = None

    def times(self, share: float) -> Requirement:
        """The same on a card that asks for this share of it."""
        some = None if self.some_from is None else self.some_from * share
        return Requirement(self.factor * share, self.side, some)

    def share(self, value: float) -> float:
        """The part of the points that `value` times as fast earns, from 0 to 1: linear in between."""
        if value >= self.factor:
            return 1.0
        if self.some_from is None or value <= self.some_from:
            return 0.0
        return (value - self.some_from) / (self.factor - self.some_from)


def at_least(factor: float, side: str, *, some_from: float | None = None) -> Requirement:
    """`at_least(1.5, "eager")`: one and a half times as fast as torch run eagerly; 0.9 is a little slower than it.
    Raises ValueError where there is no such side, or nothing between `some_from` and `factor`."""
    if side not in SIDES:
        raise ValueError(f"there is no side {side!r}; there are {', '.join(SIDES)}")
    if factor <= 0 or (some_from is not None and not 0 <= some_from < factor):
        raise ValueError(f"at_least({factor}, {side!r}, some_from={some_from}): some_from lies below the factor")
    return Requirement(factor, side, some_from)


def assert_speed(timed: Timed, *requirements: Requirement) -> None:
    """Hold `timed` against every requirement; the check earns what the worst of them leaves.

    Where noise leaves it open whether one is met, more is measured; where that does not decide it, the student gets the
    benefit and the report says so. What was known before of a side may meet a requirement, and never costs a point.
    Raises Failure (too-slow, with both figures) where one of them earns nothing, and ValueError where nothing is asked
    for.
    """
    if not requirements:
        raise ValueError("say how fast it must be: assert_speed(timed, at_least(1.5, 'eager'))")
    requirements = _on_this_card(timed, requirements)
    thresholds = {side: [r.factor for r in requirements if r.side == side] for side in {r.side for r in requirements}}
    if any(_is_open(timed, requirement) for requirement in requirements):
        timed.measure_longer(thresholds)
    share, worst = min(((_judged(timed, r), r) for r in requirements), key=lambda pair: pair[0])
    if share == 0:
        raise Failure(Cause.TOO_SLOW, _too_slow(timed, worst))
    if share < 1:
        award(share, _too_slow(timed, worst), Cause.TOO_SLOW)


def _on_this_card(timed: Timed, requirements: Sequence[Requirement]) -> tuple[Requirement, ...]:
    """A card's share of what is asked for; beside a compiler nobody knows one for a card that has no row."""
    row = row_of(timed.cards, timed.card)
    eager = tuple(requirement for requirement in requirements if requirement.side == "eager")
    if row is not None:
        return tuple(requirement.times(row.get(requirement.side, 1.0)) for requirement in requirements)
    if not timed.cards or not eager:
        return tuple(requirements)
    timed.notes += (f"No thresholds are known for {timed.card}: the ratio to eager torch decides alone.",)
    return eager


def row_of(cards: Mapping[str, Mapping[str, float]], card: str) -> Mapping[str, float] | None:
    """The row of [cards] whose name is a part of the card's; None without one."""
    return next((row for name, row in cards.items() if name.casefold() in card.casefold()), None)


def _judged(timed: Timed, requirement: Requirement) -> float:
    verdict = _verdict(timed, requirement)
    share = requirement.share(timed.ratio(requirement.side).value) if verdict is Verdict.FAIL else 1.0
    timed.verdicts.append(
        {"side": requirement.side, "at_least": requirement.factor, "some_from": requirement.some_from,
         "verdict": verdict.value, "share": share}
    )  # fmt: skip
    return share


def _is_open(timed: Timed, requirement: Requirement) -> bool:
    verdict = _verdict(timed, requirement)
    return verdict is Verdict.TOO_CLOSE or (verdict is Verdict.FAIL and not timed.is_measured(requirement.side))


def _verdict(timed: Timed, requirement: Requirement) -> Verdict:
    return decide(timed.ratio(requirement.side), requirement.factor)


def _too_slow(timed: Timed, requirement: Requirement) -> str:
    found, side = timed.ratio(requirement.side), SIDE_NAMES[requirement.side]
    took, beside = (duration(1e6 * timed.seconds(one)) for one in (STUDENT, requirement.side))
    begins = "" if requirement.some_from is None else f"; points begin at {requirement.some_from:g}"
    return (
        f"At {timed.size} on {timed.card}, {timed.entry} takes {took} where {side} takes {beside}: it is "
        f"{found.value:.2f} times as fast (between {found.low:.2f} and {found.high:.2f}), and must be "
        f"{requirement.factor:g} times as fast{begins}."
    )


def assert_peak_memory(timed: Timed, *, at_most: int) -> None:
    """Raise Failure (too-much-memory) if the call held more than `at_most` bytes at a time, inputs not counted."""
    held = timed.counters.bytes_allocated
    if held <= at_most:
        return
    raise Failure(
        Cause.TOO_MUCH_MEMORY,
        f"At {timed.size}, {timed.entry} holds {held / 2**20:.1f} MiB beside its inputs, and may hold "
        f"{at_most / 2**20:.1f} MiB.",
        facts={"peak_bytes": held, "at_most": at_most},
    )


# --- for the record --------------------------------------------------------------------------------------------------


def facts(timed: Timed) -> dict[str, Any]:
    """What the report's record says of it: docs/report.md has the fields."""
    sides = [side for side in SIDES if timed.is_measured(side) or (side == "compiled" and timed.compiled)]
    ratios = {side: timed.ratio(side) for side in sides}
    used = next(iter(ratios.values()))
    return {
        "card": timed.card, "size": timed.size,
        "microseconds": {side: 1e6 * timed.seconds(side) for side in (STUDENT, *sides)},
        "ratios": {side: {"value": r.value, "low": r.low, "high": r.high} for side, r in ratios.items()},
        "rounds": used.rounds, "discarded": used.discarded, "sm_mhz": _clocks(timed.rounds),
        "verdicts": list(timed.verdicts), "configuration": timed.configuration,
        "configurations": {label: 1e6 * seconds for label, seconds in timed.choices.items()},
        "compile_seconds": dict(timed.compile_seconds), "launches": timed.counters.launches,
        "peak_bytes": timed.counters.bytes_allocated, "roofline": _roofline(timed),
        "notes": [*timed.notes, *_known_before(timed)],
    }  # fmt: skip


def _known_before(timed: Timed) -> Iterator[str]:
    if timed.compiled is not None and not timed.is_measured("compiled"):
        gain = timed.compiled.value
        yield f"torch.compile was measured on this card before: {gain:.2f} times as fast as eager torch."


def _clocks(rounds: Rounds) -> dict[str, int] | None:
    """The slowest and the fastest clock that was read, in MHz; None where none could be."""
    read = [mhz for r in rounds for mhz in r.sm_mhz.values() if mhz is not None]
    return {"lowest": min(read), "highest": max(read)} if read else None


def _roofline(timed: Timed) -> dict[str, Any]:
    """Where the call stands below the card's ceilings; the one binds whose least time is longer."""
    work, most, peak = timed.work, timed.ceilings.bytes_per_second, timed.ceilings.rate(timed.work.dtype)
    bandwidth, rate = work.least_bytes / timed.seconds(), work.flops / timed.seconds()
    of_bytes, of_flops = bandwidth / most, rate / peak if peak else None
    return {
        "bytes_least": round(work.least_bytes), "bytes_moved": round(work.bytes_moved), "flops": round(work.flops),
        "bytes_per_second": bandwidth, "flops_per_second": rate, "most_bytes_per_second": most,
        "most_flops_per_second": peak, "of_bytes": of_bytes, "of_flops": of_flops,
        "binds": "arithmetic" if (of_flops or 0) > of_bytes else "memory",
    }  # fmt: skip


# --- times a call of the submission on the card, beside torch: submission.softmax.timed(...) ends here ----------------


class Impossible(Exception):
    """A figure that the card cannot reach: the measurement is wrong, and a person has to look at it."""


@dataclass(frozen=True)
class TimedCall:
    """`submission.<entry>.timed(*args, against=against, expected=expected)`, as a check of speed has it."""

    entry: str
    args: tuple[Any, ...]
    against: Callable[..., Any]
    expected: Callable[..., Any]


@dataclass(frozen=True)
class SpeedTrial(TimedCall):
    """A call to be timed, and the program that it became."""

    program: Program
    allow: tuple[str, ...] = ()

    def same(self, other: SpeedTrial) -> bool:
        """Whether the other would measure the same."""
        return self.program == other.program and self.args == other.args and self.against is other.against


def measure(trial: SpeedTrial, device: Device) -> Timed:
    """The call, timed. Raises NeedsCard where there is no card, or it could not do it; Failure where a result of a
    timed call is wrong, or a kernel misused the card; Unsupported where the engine does not know what a kernel does, so
    that its time says nothing; Impossible where the figures cannot be true."""
    card = device.need()
    _only_what_it_wrote(trial)
    with _left_open(trial.entry, card, device):
        timed = _measured(trial, card, device.worker, device.fresh)
    longer = timed.longer

    def measured_longer(before: Rounds, thresholds: Thresholds) -> Rounds:
        with _left_open(trial.entry, card, device):
            return longer(before, thresholds)

    timed.longer = measured_longer
    return timed


@contextlib.contextmanager
def _left_open(entry: str, card: Card, device: Device) -> Iterator[None]:
    """What keeps the card from measuring `entry` leaves the check open (NeedsCard), but a kernel's fault."""
    from gradekit.gpu.baselines import BaselineError
    from gradekit.gpu.faults import CardFault

    try:
        yield
    except CardFault as fault:
        raise device.judged(fault, entry) from None
    except BaselineError as error:
        raise NeedsCard(f"torch's side could not be timed here: {error}") from None
    except torch.OutOfMemoryError:
        raise NeedsCard(f"{card.name} has too little memory left: does something else use it?") from None
    except Unmeasurable as error:
        raise NeedsCard(f"{card.name} did not run evenly enough: {error}") from None


def _measured(trial: SpeedTrial, card: Card, worker: Worker, fresh: bool) -> Timed:
    from gradekit.gpu.ceilings import measure as ceilings_of
    from gradekit.gpu.contest import Contest
    from gradekit.gpu.replay import touched_bytes
    from gradekit.gpu.timing import sets_for

    contest = Contest(trial.against, trial.args, card, worker, fresh=fresh)
    if card.device.type == "cpu" or trial.program.choices():  # the fastest option is found with the card at rest
        prepared = worker.prepare(trial.program, trial.args, allow=trial.allow, meanwhile=contest.import_needed)
        contest.begin(prepared.sets)
    else:
        sets = sets_for(card, touched_bytes(trial.program))
        prepared = worker.prepare(trial.program, trial.args, allow=trial.allow, meanwhile=lambda: contest.begin(sets))
    contest.prepared, sides = prepared, contest.sides
    ceilings = ceilings_of(card)
    rounds = contest.rounds((), {side.name: () for side in sides}, Limit.FIRST_SECONDS)
    for number, found in enumerate(worker.results(prepared.id, card.device)):
        _verify(trial, card, number, found)
    timed = Timed(
        trial.entry, trial.args, trial.program, card.name, rounds,
        Counters(launches=prepared.launches, bytes_allocated=prepared.peak_bytes), work(trial, prepared.chosen),
        ceilings, prepared.option_label, prepared.choices,
        {STUDENT: prepared.seconds} | {side.name: side.compile_seconds for side in sides},
        tuple(_notes(prepared, sides)), contest.longer, contest.release, compiled=contest.compiled,
    )  # fmt: skip
    _possible(timed, card, prepared.sets)
    return timed


def _notes(prepared: Prepared, sides: Sequence[Baseline]) -> Iterator[str]:
    if prepared.how != "graph":
        yield f"The submission was timed without a CUDA graph, launches included ({prepared.why})."
    yield from (f"{side.name.capitalize()} torch was {side.note}." for side in sides if side.note)


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
    """A kernel that reads what nobody has written could skip its work in all calls but the first: a Failure."""
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
    values = [_whole_numbers(arg) for arg in trial.args if isinstance(arg, Input)]
    try:
        return traffic.count(trial.program, values, chosen=chosen, budget=Budget(work=5_000_000_000))
    except OverBudget:
        return None


def _whole_numbers(spec: Input) -> torch.Tensor | None:
    floating = getattr(torch, spec.dtype).is_floating_point
    return None if floating or spec.numel > Limit.READ_ELEMENTS else spec.tensor()


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
