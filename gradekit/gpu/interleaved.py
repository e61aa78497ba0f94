"""The sides take turns on one card, round after round, until whoever asked has seen enough or the time is up.

Knows neither worker nor card: a side is anything that takes a turn.

    interleave({"student": lambda: worker.turn(prepared.id, milliseconds=Limit.TURN_MS),
             "eager": lambda: eager.clock.turn(Limit.TURN_MS)}, settled({"eager": [1.5]}))
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from gradekit.gpu import Limit
from gradekit.gpu.timing import Turn
from gradekit.judge.speed import LEAST_ROUNDS, Round

TakeTurn = Callable[[], Turn]


def interleave(
    sides: Mapping[str, TakeTurn],
    settled: Callable[[Sequence[Round]], bool],
    *,
    before: Sequence[Round] = (),
    rounds: int = Limit.ROUNDS,
    budget: float = Limit.SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[Round, ...]:
    """At least `rounds` rounds, and more until they are `settled`; none is begun after `budget` seconds.

    Rounds come in laps of two, there and back. A round that does not count goes before them, so that the card gets as
    warm as it will be: a power limit bites only after a while. Sides that are very slow get fewer rounds than `rounds`,
    but never fewer than the judge needs. To measure longer, pass what was taken `before`: those rounds count, and come
    first.
    """
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
