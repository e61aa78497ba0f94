"""What one run may use, counted in work and bytes, however busy the machine; and what stops a run."""

from collections.abc import Sequence
from dataclasses import dataclass

from gradekit.findings import Finding


class Limit:
    """How programs are run together, and what is kept of a run."""

    PROGRAMS = 1 << 27  # of one launch: a byte is kept for each, and no right grid here has a thousandth of them
    # of the largest tile in all programs together: enough to hide torch's cost per call, few enough for L2
    LANES = 1 << 19
    LIVE_BYTES = 1 << 27  # of tiles that programs evaluated together hold at a time
    FEW_ROWS = 8  # of a grid, evaluated one by one: in a row, addresses rise evenly and tiles are views
    SHUFFLED = 1 << 16  # programs; those of a larger grid run in reverse order
    IN_TURNS, PATIENCE = 256, 64  # programs that take turns; atomics of one until another may have to go on: it spins
    PRODUCTS = 16  # of a dot that take as long as one element of another operation

    # other conditions: always for a run of CHEAP work, for one of OFTEN others, and one of SELDOM of COSTLY ones
    CHEAP, COSTLY = 1_000_000, 10_000_000
    OFTEN, SELDOM = 4, 16
    SAMPLE, LOOKS = 32, 4  # programs of a launch whose traffic is counted; looks at one mask in a launch

    # what is kept
    EVENTS, CLOCKS = 1 << 16, 1 << 26  # lanes of atomics that are followed one by one; entries of all clocks together
    # lanes in a history; of a large storage one for each unit, up to these
    WAITING, WAITING_OF_LARGE = 1 << 16, 1 << 23
    PRINTED = 64  # lines of device_print
    SETTLED_BYTES = 1 << 23  # of values that the next launch with the same numbers takes: as good as 1 << 25, nearly
    NESTING = 60  # levels of locations and of regions; frames of one location
    PIECE = 1 << 20  # elements that are looked at together for the first that are true


STEP = 10_000
"""The work of evaluating one operation beside that of its elements: about ten microseconds."""

LAUNCH = 50  # a launch counts as this many operations, beside those of its programs: half a millisecond

PARTS_OF_BUDGET = 16
"""A run in which memory went wrong ends after one of so many parts of its budget, or at twice what it had taken."""

AGAIN = 20_000_000  # a call that takes more work is not run again only to say more about it


class OverBudget(Exception):
    """The run used up its `resource` ("work", "bytes", a launch's "programs"): `limit`. `findings` came before."""

    def __init__(self, resource: str, limit: float, line: int | None = None) -> None:
        super().__init__(f"more than {limit:g} {resource}")
        self.resource, self.limit, self.line = resource, limit, line
        self.findings: list[Finding] = []


class Unsupported(Exception):
    """The engine does not know `op`: the check is pending, never a zero."""

    def __init__(self, op: str, line: int | None = None) -> None:
        super().__init__(f"{op} is not known to the CPU engine")
        self.op, self.line = op, line


@dataclass(frozen=True)
class Budget:
    """What one run may use.

    `work` counts elements that operations make or read, STEP for each operation evaluated, and LAUNCH operations for
    each launch: about a nanosecond each. `bytes` limits what the host allocates with what it returns, what one program
    holds in registers, and the maps of who has accessed what in one launch: each of the three.
    """

    work: int = 20_000_000_000
    bytes: int = 1 << 28


class Meter:
    """Counts a run against its budget, and what the kernels did: floating-point operations of dots and elementwise ops.
    A run with incidents ends sooner: a loop may run to what was loaded outside of its tensor."""

    def __init__(self, budget: Budget) -> None:
        self.budget, self.work, self.flops = budget, 0, 0
        self.incidents: Sequence[object] = ()  # what the run has seen go wrong in memory so far
        self._next_look = budget.work // PARTS_OF_BUDGET

    def spend(self, operations: int, elements: int = 0) -> None:
        """Counts operations, with the elements that they make. Raises OverBudget where the work is used up."""
        self.work += operations * STEP + elements
        if self.work > self._next_look:
            if self.incidents or self.work > self.budget.work:
                raise OverBudget("work", self._next_look if self.incidents else self.budget.work)
            self._next_look = min(max(self.work, 2 * self._next_look), self.budget.work)

    def afford(self, operations: int, elements: int) -> None:
        """Raises OverBudget where what is sure to come, and is not counted yet, is more than is left."""
        if self.work + operations * STEP + elements > self.budget.work:
            raise OverBudget("work", self.budget.work)

    def check_bytes(self, nbytes: int, line: int | None = None) -> None:
        """Raises OverBudget where `nbytes` are more than the budget has."""
        if nbytes > self.budget.bytes:
            raise OverBudget("bytes", self.budget.bytes, line)
