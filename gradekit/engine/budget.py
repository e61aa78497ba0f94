"""What one run may use, counted in work and bytes: the same on a busy machine as on an idle one. And what is raised
where a run cannot go on.
"""

from __future__ import annotations

from dataclasses import dataclass

STEP = 10_000
"""The work of evaluating one operation for any number of programs, beside that of its
elements: about ten microseconds."""

LAUNCH = 50
"""A launch counts as this many operations, beside those of its programs: half a millisecond."""

AGAIN = 20_000_000
"""A call that takes more work is not run again only to say more about it."""


class OverBudget(Exception):
    """The run used up its `resource`: "work", "bytes" or "programs" of one launch. `limit` says how much that was."""

    def __init__(self, resource: str, limit: float, line: int | None = None) -> None:
        super().__init__(f"more than {limit:g} {resource}")
        self.resource, self.limit, self.line = resource, limit, line


class Unsupported(Exception):
    """The engine does not know `op`: the check is pending, never a zero."""

    def __init__(self, op: str, line: int | None = None) -> None:
        super().__init__(f"{op} is not known to the CPU engine")
        self.op, self.line = op, line


@dataclass(frozen=True)
class Budget:
    """What one run may use.

    `work` counts elements that operations make or read, STEP for each operation evaluated, and LAUNCH operations for
    each launch: about a nanosecond each.
    `bytes` limits what the host allocates with what it returns, what one program holds in registers, and the maps of
    who has accessed what in one launch: each of the three.
    """

    work: int = 20_000_000_000
    bytes: int = 1 << 28


class Meter:
    """Counts a run against its budget, and what the kernels did: floating-point
    operations of dots and elementwise ops."""

    def __init__(self, budget: Budget) -> None:
        self.budget, self.work, self.flops = budget, 0, 0

    def spend(self, operations: int, elements: int = 0) -> None:
        """Counts operations, with the elements that they make.

        Raises:
            OverBudget: the work is used up.
        """
        self.work += operations * STEP + elements
        if self.work > self.budget.work:
            raise OverBudget("work", self.budget.work)

    def afford(self, operations: int, elements: int) -> None:
        """Raises OverBudget where what is sure to come, and is not counted yet, is more than is left."""
        if self.work + operations * STEP + elements > self.budget.work:
            raise OverBudget("work", self.budget.work)

    def check_bytes(self, nbytes: int, line: int | None = None) -> None:
        """Raises OverBudget where `nbytes` are more than the budget has."""
        if nbytes > self.budget.bytes:
            raise OverBudget("bytes", self.budget.bytes, line)
