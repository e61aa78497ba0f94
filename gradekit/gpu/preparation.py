"""A program made ready to be timed: its sets of inputs on the card, the fastest configuration, and a clock.

Worker side. Which configuration of an autotuned kernel is the fastest is decided here, by the same clock and on the
same sets as the turns that count: a submission's own choice, or its own clock, has no part in it.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from torch import Tensor

from gradekit.gpu import Limit
from gradekit.gpu.card import Reading
from gradekit.gpu.device_memory import POISON, RedZoneWrite
from gradekit.gpu.faults import CardFault
from gradekit.gpu.replay import BoundProgram, CaughtWrite, Replay, Watch
from gradekit.gpu.timing import Turn
from gradekit.program import Choice, add_nouns

if TYPE_CHECKING:
    from gradekit.gpu.cpu_emulation import CpuClock
    from gradekit.gpu.timing import Clock


@dataclass(frozen=True)
class Prepared:
    """A program that is ready to be timed: the fastest configuration's label ("" for no choice), the options `chosen`
    there, and in `choices` what a call took with each, in seconds; `launches` and `peak_bytes` of a call, `sets` of
    inputs, and the wall `seconds` that it took. `how` is "graph", or "stream" where none can be captured (`why`)."""

    id: int
    option_label: str
    chosen: tuple[int, ...]
    choices: dict[str, float]
    launches: int
    peak_bytes: int
    sets: int
    how: str = "graph"
    why: str = ""
    seconds: float = 0.0


@dataclass
class Preparation:
    """`sets` are the tensors of each set. After `make_ready`, `chosen` says which option each choice takes, and `tuned`
    how many seconds a call took with each that works."""

    replay: Replay
    sets: list[list[Tensor]]
    chosen: list[int] = field(default_factory=list)
    tuned: dict[str, float] = field(default_factory=dict)
    bounds: list[BoundProgram] = field(default_factory=list)
    clock: Clock | CpuClock | None = None

    def make_ready(self, watch: Watch) -> Clock | CpuClock:
        """Compiles, runs everything once with each action awaited, picks the fastest options and starts the clock;
        `watch` is told what is done at each moment. Raises CardFault where no configuration works."""
        watch("compile", "", None)
        self.replay.machine.compile(list(self.replay.program.kernels.values()))  # what cannot be shows when it is bound
        found = self.replay.program.choices()
        self.chosen = [0] * len(found)
        for position, choice in enumerate(found):
            self._tune(position, choice, watch)
        return self._start(self.chosen, watch)

    def turn(self, milliseconds: float) -> Turn:
        """One turn of the clock."""
        assert self.clock is not None
        return self.clock.turn(milliseconds)

    def close(self) -> None:
        """Gives the memory back."""
        if self.clock is not None:
            self.clock.close()
        self.clock, self.bounds = None, []

    # --- what is known of it -----------------------------------------------------------------------------------------

    @property
    def label(self) -> str:
        """The chosen configurations, as their author wrote them."""
        found = self.replay.program.choices()
        return "; ".join(_labels(choice, found)[k] for choice, k in zip(found, self.chosen, strict=True))

    # --- which option ------------------------------------------------------------------------------------------------

    def _tune(self, position: int, choice: Choice, watch: Watch) -> None:
        labels, seconds, faults = _labels(choice, self.replay.program.choices()), dict[int, float](), list[CardFault]()
        for option in choice.configurations:
            chosen = [*self.chosen[:position], option, *self.chosen[position + 1 :]]
            try:
                seconds[option] = self._timed(chosen, watch)
            except CardFault as fault:
                if fault.deadly:
                    raise
                faults.append(fault)
        if not seconds:
            raise faults[0]
        self.chosen[position] = min(seconds, key=seconds.__getitem__)
        self.tuned |= {labels[option]: taken for option, taken in seconds.items()}

    def _timed(self, chosen: Sequence[int], watch: Watch) -> float:
        """Seconds of one call with these options: the median of a turn."""
        self._start(chosen, watch)
        try:
            if not self.tuned:
                self.turn(Limit.TUNING_MS)  # the card's clocks are still rising
            return statistics.median(self.turn(Limit.TUNING_MS).seconds)
        finally:
            self.close()

    def _start(self, chosen: Sequence[int], watch: Watch) -> Clock | CpuClock:
        self.bounds = [self.replay.bind(tensors, chosen) for tensors in self.sets]
        self.replay.awaited(self.bounds[0], watch)
        watch("time", "", None)
        self.clock = self.replay.machine.clock(self.bounds, self._refresh)
        return self.clock

    def _refresh(self) -> None:
        """What the last round wrote is gone before the next one, so that no kernel can find its work done already."""
        for data in {data.data_ptr(): data for bound in self.bounds for data in bound.memory.made}.values():
            data.fill_(POISON)


def _labels(choice: Choice, among: Sequence[Choice]) -> list[str]:
    """What the options are called: each differently, with the line where there are several choices."""
    line = f"line {choice.source.line}: " if len(among) > 1 and choice.source else ""
    if len(among) > 1 and not line:
        line = f"launch {among.index(choice) + 1}: "
    labels = [f"{line}{label}" for label in choice.labels] + [f"{line}configuration"] * len(choice.options)
    first = labels[: len(choice.options)]
    return [label if first.count(label) == 1 else f"{label} ({k + 1})" for k, label in enumerate(first)]


add_nouns(Prepared, Turn, Reading, CaughtWrite, RedZoneWrite)
