"""What one run may use, counted in work."""

from __future__ import annotations

import time
from dataclasses import dataclass


class OverBudget(Exception):
    """The run used up its `resource` (steps, bytes or seconds); `limit` says how much that was."""

    def __init__(self, resource: str, limit: float, line: int | None = None) -> None:
        super().__init__(f"more than {limit:g} {resource}")
        self.resource, self.limit, self.line = resource, limit, line


@dataclass(frozen=True)
class Budget:
    """What one run may use: evaluated operations, bytes of allocated memory and of one tile, seconds of computing (which
    are the same on a busy machine as on an idle one)."""

    steps: int = 1_000_000
    bytes: int = 1 << 30
    seconds: float = 6.0


class Meter:
    """Counts a run against its budget, and what the kernels did: floating-point operations of dots and elementwise ops."""

    def __init__(self, budget: Budget) -> None:
        self.budget, self.steps, self.flops = budget, 0, 0
        self.deadline = time.thread_time() + budget.seconds

    def spend(self, steps: int) -> None:
        """Raises OverBudget when the steps or the seconds are used up."""
        self.steps += steps
        if self.steps > self.budget.steps:
            raise OverBudget("steps", self.budget.steps)
        if time.thread_time() > self.deadline:
            raise OverBudget("seconds", self.budget.seconds)
