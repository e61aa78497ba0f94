"""A submission, the eager and the compiled reference, in turn on one card: who takes part, and for how long."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradekit.compat import torch_compile
from gradekit.gpu import Limit, baselines
from gradekit.gpu.card import Card
from gradekit.gpu.inputs import make_set
from gradekit.gpu.interleaved import interleave
from gradekit.gpu.timing import Turn
from gradekit.gpu.worker import Prepared, Worker
from gradekit.judge.speed import Round, ratio, settled

Rounds = Sequence[Round]
Thresholds = Mapping[str, Sequence[float]]


class Contest:
    """`against` is what torch does of the submission's call with `args`. Its compiled form has no part in it at first
    where it was measured on the card before (`compiled`: how many times as fast as eager torch it was) and nothing asks
    for a `fresh` figure: to import torch.compile and to compile takes longer than all rounds. `prepared` is the
    submission's side, to be set."""

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
        """Makes torch's sides ready, with so many sets of inputs. Raises BaselineError where torch cannot run or
        compile the function here."""
        made = self._made(sets)
        self.sides.append(baselines.eager(self._against, made, self._card))
        if self.compiled is None:
            self.sides.append(baselines.compiled(self._against, made, self._card))

    def rounds(self, before: Rounds, thresholds: Thresholds, budget: float) -> Rounds:
        """More rounds than `before`, of all sides, for about so many wall seconds."""
        worker, id = self._worker, self._ready.id
        turns: dict[str, Callable[[], Turn]] = {"student": lambda: worker.turn(id, milliseconds=Limit.TURN_MS)}
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
