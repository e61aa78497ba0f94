"""A CPU emulation of a card, for machines that have none: the CPU engine evaluates each launch, lane by lane.

Worker side. Everything else is as on a card: the process, the plan of a program, addresses, red zones, faults and time
limits. It shows that these work; what it times says nothing of any card.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence

import torch
from torch import Tensor

from gradekit.engine.budget import Budget, Meter
from gradekit.engine.checked import CheckedMemory
from gradekit.engine.frame import LaunchContext
from gradekit.engine.kernel_facts import facts, parsed
from gradekit.engine.launch import bind, run_programs
from gradekit.engine.memory import Memory, Storage
from gradekit.findings import Cause
from gradekit.gpu.card import Card
from gradekit.gpu.device_memory import DeviceMemory
from gradekit.gpu.faults import CardFault
from gradekit.gpu.timing import Call, Turn, samples
from gradekit.observations import Incident, Traffic
from gradekit.program import ADDRESS_GAP, Argument, Kernel

NAME = "CPU emulation"
CARD = Card(NAME, "standin", -1, (0, 0), 0, 0, 0)

ENDLESS = Budget(work=1 << 62, bytes=1 << 62)  # as a card has none, so that a kernel that hangs there hangs here

_OUTSIDE = (Cause.OUT_OF_BOUNDS_LOAD, Cause.OUT_OF_BOUNDS_STORE)


class CpuMachine:
    """What `cuda_machine.CudaMachine` is, on the CPU."""

    device = torch.device("cpu")

    def compile(self, kernels: Collection[Kernel]) -> dict[str, CardFault]:
        """Nothing is compiled."""
        return {}

    def launch(
        self, kernel: Kernel, grid: tuple[int, int, int], args: Sequence[Argument], memory: DeviceMemory
    ) -> Callable[[], None]:
        """The launch, to be evaluated when it is called."""
        return lambda: _evaluate(kernel, grid, args, memory)

    def address(self, number: int, data: Tensor) -> int:
        """Where the engine's address space has the storage."""
        return (number + 1) * ADDRESS_GAP

    def synchronize(self) -> None:
        """Everything is done already."""

    def clock(self, calls: Sequence[Call], refresh: Callable[[], None]) -> CpuClock:
        """A clock of these calls; `refresh` makes memory fresh before each round of them."""
        return CpuClock(calls, refresh)

    def sets_for(self, nbytes: int) -> int:
        """Two sets tell as much as many."""
        return 2


def _evaluate(kernel: Kernel, grid: tuple[int, int, int], args: Sequence[Argument], memory: DeviceMemory) -> None:
    module, emulated, seen = parsed(kernel.unaligned), Memory(), list[Incident]()
    for number, data in memory.storages.items():
        emulated.storages[number] = Storage(number, data, (number + 1) * ADDRESS_GAP)
    checked = CheckedMemory(Traffic(), seen, emulated.at_gaps(), grid[0] * grid[1] * grid[2])
    context = LaunchContext(
        module, facts(kernel.unaligned), grid, checked, Meter(ENDLESS), 0, kernel.name, "", [], seen
    )
    run_programs(context, bind(module.entry, args, emulated))
    print(*context.prints, sep="\n", end="\n" if context.prints else "", flush=True)
    if any(incident.cause in _OUTSIDE for incident in seen):
        raise CardFault("illegal-access", "an illegal memory access was encountered", kernel.name)


class CpuClock:
    """What `timing.Clock` is, with the host's clock: `outputs` are what the calls return, in order."""

    how, why = "stream", NAME

    def __init__(self, calls: Sequence[Call], refresh: Callable[[], None] = lambda: None) -> None:
        self._calls, self._refresh = tuple(calls), refresh
        self.outputs = [call() for call in calls]

    def turn(self, milliseconds: float) -> Turn:
        """About so many milliseconds of calls, in rotation; three rounds at least."""
        return Turn(samples(self._once, milliseconds / 1e3 / len(self._calls)))

    def _once(self) -> float:
        self._refresh()
        began = time.perf_counter()
        self.outputs = [call() for call in self._calls]
        return (time.perf_counter() - began) / len(self._calls)

    def close(self) -> None:
        """Forget the calls and what they returned."""
        self._calls, self.outputs = (), []
