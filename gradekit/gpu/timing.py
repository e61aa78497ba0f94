"""One side's clock: how long a call takes on the card, with a cold cache and without the host.

The worker has a Clock for the submission, the grader one for each baseline; all of them measure alike. A CUDA graph
holds one call for each set of inputs, after a sweep that fills the L2 cache with something else: so no call finds its
inputs in the cache, and no launch waits for the host. Two events in the graph stand around the calls alone.
"""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from gradekit.gpu import Limit
from gradekit.gpu.card import Card, Reading, read

Call = Callable[[], Any]
"""A call of one set of inputs, with nothing left to decide on the host; what it returns is kept as its output."""


@dataclass(frozen=True)
class Turn:
    """For each replay of a clock's graph, the device seconds of a call; the card's clocks before and after all."""

    seconds: tuple[float, ...]
    before: Reading | None = None
    after: Reading | None = None


def sets_for(card: Card, nbytes: int) -> int:
    """How many sets of inputs to rotate for a call that reads and writes `nbytes` bytes in all."""
    room = min(Limit.SET_BYTES, card.memory_bytes // 8) // max(nbytes, 1)
    wanted = math.ceil(Limit.FOOTPRINT * card.l2_bytes / max(nbytes, 1))
    return max(Limit.LEAST_SETS, min(wanted, Limit.SETS, room))


class Clock:
    """Keeps time of `calls`, one for each set of inputs; `outputs` are what they return. `how` is "graph", or "stream"
    where they cannot be captured (`why`): then the host's launches count too. `refresh` is called before each round,
    outside of what is timed, so that no memory is held for the next. Raises what calls raise without a graph."""

    def __init__(self, calls: Sequence[Call], card: Card, refresh: Callable[[], None] = lambda: None) -> None:
        self.how, self.why = "graph", ""
        self._card, self._calls, self._refresh = card, tuple(calls), refresh
        with torch.cuda.device(card.device):
            self._start, self._end = (torch.cuda.Event(enable_timing=True, external=True) for _ in range(2))
            self._graph, self.outputs = self._prepare()

    def turn(self, milliseconds: float) -> Turn:
        """About so many milliseconds of replays (three at least), after some that are not counted."""
        with torch.cuda.device(self._card.device):
            before = self._lead_in()
            seconds = samples(self._once, milliseconds / 1e3 / len(self._calls))
            return Turn(seconds, before, read(self._card))  # right after work, before the clocks go down

    def close(self) -> None:
        """Forget graph, outputs and calls."""
        self._graph, self.outputs, self._calls = None, [], ()

    def _prepare(self) -> tuple[torch.cuda.CUDAGraph | None, list[Any]]:
        for call in self._calls[:2]:  # what is set up at the first call must not be captured
            call()
        _sweeper(self._card)
        torch.cuda.synchronize()
        try:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                outputs = self._enqueue()
            return graph, outputs
        except RuntimeError as error:
            torch.cuda.synchronize()
            self.how, self.why = "stream", str(error).strip().partition("\n")[0]
            self._start, self._end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            return None, self._enqueue()

    def _enqueue(self) -> list[Any]:
        self._refresh()
        first, second = _sweeper(self._card)
        first.copy_(second)  # the L2 cache is full of what nobody asks for, half of it still to be written to memory
        self._start.record()
        outputs = [call() for call in self._calls]
        self._end.record()
        return outputs

    def _replay(self) -> None:
        if self._graph is not None:
            self._graph.replay()
        else:
            self.outputs = self._enqueue()

    def _once(self) -> float:
        self._replay()
        self._end.synchronize()
        return self._start.elapsed_time(self._end) / 1e3 / len(self._calls)

    def _lead_in(self) -> Reading | None:
        """The clocks, read while the card is busy with replays that are not counted, or right after a long one."""
        enough = math.ceil(Limit.BUSY_SECONDS / (self._once() * len(self._calls)))
        for _ in range(min(enough, Limit.AHEAD) - 1):
            self._replay()
        reading = read(self._card)
        torch.cuda.synchronize()
        return reading


def samples(once: Callable[[], float], seconds: float) -> tuple[float, ...]:
    """What `once` answers, called until the sum reaches `seconds`, and `Limit.LEAST_REPLAYS` times at least."""
    taken = [once() for _ in range(Limit.LEAST_REPLAYS)]
    while sum(taken) < seconds:
        taken.append(once())
    return tuple(taken)


@functools.cache
def _sweeper(card: Card) -> tuple[torch.Tensor, torch.Tensor]:
    first, second = torch.zeros(2, Limit.SWEEP * card.l2_bytes // 8, dtype=torch.int32, device=card.device)
    return first, second
