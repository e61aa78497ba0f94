"""A submission, the eager and the compiled reference, in turn on one card: who takes part, and for how long.

`interleave` knows neither worker nor card: a side is anything that takes a turn.

    interleave({"student": lambda: worker.turn(prepared.id, milliseconds=Limit.TURN_MS),
                "eager": lambda: eager.clock.turn(Limit.TURN_MS)}, settled({"eager": [1.5]}))
"""

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradekit.compat import torch_compile
from gradekit.gpu import Limit, baselines
from gradekit.gpu.card import Card
from gradekit.gpu.inputs import make_set
from gradekit.gpu.timing import Turn
from gradekit.gpu.worker import Prepared, Worker
from gradekit.judge.speed import LEAST_ROUNDS, Round, ratio, settled

Rounds = Sequence[Round]
TakeTurn = Callable[[], Turn]
Thresholds = Mapping[str, Sequence[float]]


class Contest:
    """`against` is what torch does of the submission's call with `args`. Its compiled form has no part in it at first
    where it is known for the card (`compiled`, times as fast as eager torch) and no `fresh` figure is asked for: to
    compile takes longer than all rounds. `prepared` is the submission's side, to be set."""

    def __init__(
        self, against: Callable[..., Any], args: Sequence[Any], card: Card, worker: Worker, *, fresh: bool = False
    ) -> None:
        self._against, self._args, self._card, self._worker = against, args, card, worker
        self._comparison = baselines.Comparison(against, args, card)
        self.compiled = None if fresh else self._comparison.found
        self.sides: list[baselines.Baseline] = []
        self.prepared: Prepared | None = None

    def import_needed(self) -> None:
        """Imports what `begin` needs, without a look at the card: for while it is busy."""
        if self.compiled is None and self._card.device.type != "cpu":
            torch_compile.load()

    def begin(self, sets: int) -> None:
        """Makes torch's sides ready, with so many sets of inputs. Raises BaselineError where torch cannot."""
        made = self._made(sets)
        self.sides.append(baselines.eager(self._against, made, self._card))
        if self.compiled is None:
            self.sides.append(baselines.compiled(self._against, made, self._card))

    def rounds(self, before: Rounds, thresholds: Thresholds, budget: float) -> Rounds:
        """More rounds than `before`, of all sides, for about so many wall seconds."""
        worker, id = self._worker, self._ready.id
        turns: dict[str, TakeTurn] = {"student": lambda: worker.turn(id, milliseconds=Limit.TURN_MS)}
        turns |= {side.name: functools.partial(side.clock.turn, Limit.TURN_MS) for side in self.sides}
        taken = interleave(turns, settled(thresholds), before=before, budget=budget)
        if "compiled" in turns:
            self._comparison.keep(ratio(taken, "eager", "compiled"))
        return taken

    def longer(self, before: Rounds, thresholds: Thresholds) -> Rounds:
        """More rounds than `before`; new ones where the compiled form had no part in those."""
        if all(side.name != "compiled" for side in self.sides):
            self.sides.append(baselines.compiled(self._against, self._made(self._ready.sets), self._card))
            before = ()
        return self.rounds(before, thresholds, Limit.LONGER_SECONDS)

    def release(self) -> None:
        """Gives back what the card holds."""
        self._worker.forget(self._ready.id)
        for side in self.sides:
            side.clock.close()

    @property
    def _ready(self) -> Prepared:
        assert self.prepared is not None
        return self.prepared

    def _made(self, sets: int) -> list[list[Any]]:
        return [make_set(self._args, number, self._card.device) for number in range(sets)]


# --- turns ------------------------------------------------------------------------------------------------------------


def interleave(
    sides: Mapping[str, TakeTurn], settled: Callable[[Rounds], bool], *, before: Rounds = (),
    rounds: int = Limit.ROUNDS, budget: float = Limit.SECONDS, clock: Callable[[], float] = time.monotonic,
) -> tuple[Round, ...]:  # fmt: skip
    """At least `rounds` rounds, after those taken `before`, and more until they are `settled`; none is begun after
    `budget` seconds, but the judge's least number is always taken. Rounds come in laps of two, there and back. One that
    does not count goes first, so that the card gets as warm as it will be: a power limit bites only after a while."""
    start, taken, enough = clock(), list(before), False
    for take in sides.values():
        take()
    look = max(rounds, len(taken) + 1)
    while not enough and (len(taken) < LEAST_ROUNDS or clock() - start < budget):
        for way in order(list(sides), len(taken) // 2):
            taken.append(to_round({side: sides[side]() for side in way}))
        if len(taken) >= look:
            enough, look = settled(taken), look + 2 * max(1, look // (2 * Limit.LOOKS))
    return tuple(taken)


def order(sides: Sequence[str], lap: int) -> tuple[list[str], list[str]]:
    """The order there and back: each side begins in turn, and each follows each other one equally often."""
    start = lap % len(sides)
    there = [*sides[start:], *sides[:start]]
    return there, there[::-1]


def to_round(turns: Mapping[str, Turn]) -> Round:
    """What the judge is to know of one turn of each side."""
    readings = {side: [r for r in (turn.before, turn.after) if r is not None] for side, turn in turns.items()}
    return Round(
        seconds={side: turn.seconds for side, turn in turns.items()},
        sm_mhz={side: min((r.sm_mhz for r in several), default=None) for side, several in readings.items()},
        throttled=tuple(sorted({why for s in readings.values() for r in s if r.throttled for why in r.reasons})),
    )
