"""Small kernels that together use everything that Triton's front end emits, by theme."""

from corpus import (
    atomics,
    calls,
    casts,
    control,
    descriptors,
    dots,
    floats,
    functions,
    integers,
    pointers,
    randoms,
    reductions,
    scans,
    shapes,
)
from corpus.case import CASES, Case

__all__ = [
    "CASES", "Case", "atomics", "calls", "casts", "control", "descriptors", "dots", "floats", "functions", "integers",
    "pointers", "randoms", "reductions", "scans", "shapes",
]  # fmt: skip
