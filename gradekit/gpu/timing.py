"""One side's clock: how long a call takes on the card, with a cold cache and without the host.

The worker has a Clock for the submission, the grader one for each baseline; all of them measure alike. A CUDA graph
holds one call for each set of inputs, back to back, after a sweep that fills the L2 cache with something else: so every
call meets inputs that are not in the cache, and no launch waits for the host. Two events inside of the graph stand
around the calls alone.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from gradekit.gpu.card import Card, Reading, read

Call = Callable[[], Any]
"""A call of one set of inputs, with nothing left to decide on the host; what it returns is kept as its output."""

COLD = 3
"""The sweep and, where sets are small enough, the sets together are so many times the L2 cache."""

MOST_SETS = 128
LEAST_SETS = 2
MOST_BYTES = 8 << 30
"""Sets and outputs of one side take no more memory than this (and no more than an eighth of the card's)."""

LEAST_REPLAYS = 3


@dataclass(frozen=True)
class Turn:
    """What one turn of a clock saw: for each replay of its graph, the device seconds of one call (the mean over the
    sets), and the card's clocks at the beginning and the end of the turn, both while the card worked."""

    seconds: tuple[float, ...]
    before: Reading | None = None
    after: Reading | None = None


def sets_for(card: Card, nbytes: int) -> int:
    """How many sets of inputs to rotate for a call that reads and writes `nbytes` bytes in all."""
    room = min(MOST_BYTES, card.memory_bytes // 8) // max(nbytes, 1)
    wanted = math.ceil(COLD * card.l2_bytes / max(nbytes, 1))
    return max(LEAST_SETS, min(wanted, MOST_SETS, room))


class Clock:
    """Keeps time of `calls`, one for each set of inputs. `outputs` are what the calls that are timed return, in order.

    `how` is "graph", or "stream" where the calls cannot be captured (`why` says what torch said): then the host's
    launches count too, as they do for everybody who calls the function. Close it to give its memory back.

    Raises:
        whatever a call raises when it is made outside of a graph.
    """

    def __init__(self, calls: Sequence[Call], card: Card) -> None:
        raise NotImplementedError

    def turn(self, milliseconds: float) -> Turn:
        """About so many milliseconds of replays (three at least), after one that is not counted."""
        raise NotImplementedError

    def close(self) -> None:
        """Forget graph, outputs and calls."""
        raise NotImplementedError
