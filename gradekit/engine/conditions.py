"""What a card leaves open, and a run has to fix: the order of programs, and what stands where nothing is defined."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from torch import Tensor

FILLINGS = (0x55, 0xFF)
"""Bytes of which undefined lanes are made, one in a run that fills them: 1431655765 and -1 as int32, 1.47e13 and NaN as
float32. A maximum hides NaN, and a factor of 0 hides all others."""


class Order(Enum):
    """In which order the programs of a launch run."""

    ASCENDING = "in order"
    REVERSED = "in reverse order"
    SHUFFLED = "in another order"
    """In an order of its own for each launch; where programs wait for each other, in turns."""


Earlier = Callable[[], Sequence[Tensor]]
"""Makes the inputs of a call, when they are needed."""


@dataclass(frozen=True)
class Conditions:
    """The conditions of one run. A result that depends on them is right by luck.

    `filled`: the byte that lanes are made of which the mask of a load leaves undefined, zeros where it is None; those
    of the loads at `line` alone, where one is given. `tuning`: each autotuned launch is made as in the autotuner's
    first call, in every configuration, before the configuration of the run. `earlier`: the call is made after one of
    these inputs, of the same shapes, and what it keeps from call to call is as that has left it. `promised`: what a
    kernel promises to be contiguous goes on as promised from the first of each group.
    """

    order: Order = Order.ASCENDING
    filled: int | None = None
    line: int | None = None
    tuning: bool = False
    earlier: Earlier | None = None
    promised: bool = False


USUAL = Conditions()
