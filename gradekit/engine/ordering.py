"""Which programs of a launch are ordered by atomics: happens-before, as Triton's acquire and release define it.

A program publishes what it has done by an atomic with release semantics, and takes over what was published at the same
address by an atomic with acquire semantics whose answer it looks at: who does not look cannot know that it comes later.
A volatile load takes over, too. Atomics of scope "cta" order nothing between programs.

Vector clocks are kept only for programs that have taken over something, and are worked out when somebody asks.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from gradekit.engine.unsupported import Unsupported

NEVER = -1
MOST_EVENTS = 1 << 16
"""Lanes of atomics that are followed one by one; kernels that are ordered by more of
them are not known to the engine."""
MOST_CLOCKS = 1 << 26
"""Entries of all clocks together."""


@dataclass(slots=True)
class _Event:
    """One execution of an atomic, for many programs in turn: lanes by program, with the address of each."""

    programs: Tensor
    addresses: Tensor
    acquires: bool
    releases: Tensor | None
    """Which lanes publish (bool); None for all of them."""
    done: Tensor | None
    """By which time what the lane's program did is published; None for all that it has done."""


@dataclass
class Ordering:
    """The atomics of one launch of `total` programs; `time` is how many of them have been executed."""

    total: int
    time: int = 0
    _events: list[_Event] = field(default_factory=list)
    _done: int = 0
    _clocks: dict[int, Tensor] = field(default_factory=dict)
    _published: dict[int, Tensor] = field(default_factory=dict)
    _lanes: int = 0
    _acquired: bool = False

    def record(
        self,
        programs: Tensor,
        addresses: Tensor,
        acquires: bool,
        releases: Tensor | None,
        done: Tensor | None = None,
    ) -> None:
        """An atomic of these lanes, by program and address (bytes): whether it acquires, and which lanes release
        what they had done by `done`. Without lanes, it parts what was done before from what comes after it."""
        self._acquired |= acquires
        self._events.append(_Event(programs, addresses, acquires, releases, done))
        self.time += 1

    def ordered(self, earlier: Tensor, times: Tensor, later: Tensor | int) -> Tensor:
        """For each lane, whether what program `earlier` did before `times` comes before what `later`, which may be the
        same for all, does now."""
        self._advance()
        result = torch.zeros(earlier.numel(), dtype=torch.bool)
        if isinstance(later, int):  # one program alone, as where programs take turns
            clock = self._clocks.get(later)
            return result if clock is None else clock.index_select(0, earlier) >= times
        for program in later.unique().tolist():
            clock = self._clocks.get(program)
            if clock is not None:
                mine = later == program
                result[mine] = clock.index_select(0, earlier[mine]) >= times[mine]
        return result

    def comes_before(self, earlier: int, time: int, later: int) -> bool:
        """Whether all that program `earlier` did before `time` comes before what `later` does now."""
        self._advance()
        clock = self._clocks.get(later)
        return clock is not None and int(clock[earlier]) >= time

    def _advance(self) -> None:
        """Works out the clocks up to now."""
        if not self._acquired:
            return
        for number, event in enumerate(self._events[self._done :], self._done):
            self._take(event, number)
        self._done = len(self._events)

    def _take(self, event: _Event, number: int) -> None:
        releases = [True] * event.programs.numel() if event.releases is None else event.releases.tolist()
        done = [number] * len(releases) if event.done is None else event.done.tolist()
        lanes = dict.fromkeys(zip(event.programs.tolist(), event.addresses.tolist(), releases, done, strict=True))
        self._lanes += len(lanes)
        if self._lanes > MOST_EVENTS or (len(self._clocks) + len(self._published)) * self.total > MOST_CLOCKS:
            raise Unsupported(f"a launch that more than {MOST_EVENTS} atomics put in order")
        for program, address, releases_here, time in lanes:
            before = self._published.get(address)
            if event.acquires and before is not None:
                own = self._clocks.get(program)
                self._clocks[program] = before if own is None else torch.maximum(own, before)
            if releases_here:
                self._published[address] = self._clock(program, time, before)

    def _clock(self, program: int, time: int, before: Tensor | None) -> Tensor:
        """What is known after `program` has published what it did by `time`."""
        own = self._clocks.get(program)
        known = torch.full([self.total], NEVER, dtype=torch.int32) if own is None else own.clone()
        known[program] = time
        return known if before is None else torch.maximum(known, before)
