"""What a run of a program shows, as data: places in kernels, incidents in memory, bytes moved, and what was launched.

Imports nothing but the vocabulary of findings: the engine writes these, and whoever judges reads them.
"""

from dataclasses import dataclass

from gradekit.findings import Cause

ON_THE_HOST = -1  # the number that stands for a launch where the host itself did something

SHOWN = 8  # how many of the elements that one incident concerns are kept


@dataclass(frozen=True, slots=True)
class Site:
    """A place in a submission: its `line` (None: unknown), in the `kernel` of launch number `launch` of the run, and
    the line of the call, where that is in a function that the kernel calls."""

    line: int | None
    launch: int = ON_THE_HOST
    kernel: str = ""
    caller: int | None = None


@dataclass(slots=True)
class Incident:
    """One thing that went wrong at one site.

    `storage` is the id of the storage that was touched, None for an address outside of all of them, or where no memory
    is concerned. `elements` are positions in it, in units of `itemsize` bytes, and `programs` the linear ids of the
    programs beside them: the first SHOWN of `count`. `capacity` is how many elements the storage holds.
    """

    cause: Cause
    site: Site
    storage: int | None
    itemsize: int
    elements: list[int]
    programs: list[int]
    count: int
    message: str = ""
    capacity: int = 0


@dataclass(slots=True)
class Traffic:
    """Bytes that lanes asked for, active lanes only, whether or not a cache has them."""

    loaded: int = 0
    stored: int = 0


@dataclass
class Counters:
    """What a run did: bytes that active lanes loaded and stored, floating-point operations, launches, bytes allocated.
    `work` is what it used of its budget (see gradekit.engine.budget)."""

    bytes_loaded: int = 0
    bytes_stored: int = 0
    flops: int = 0
    launches: int = 0
    bytes_allocated: int = 0
    allocations: int = 0
    work: int = 0
