"""The accesses of a kernel to memory, by a walk with all the rules of this room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradekit.engine import Module
from gradekit.prove import loops, memory_rules, tiles  # noqa: F401  (rules enter themselves)
from gradekit.prove.solve import Solver
from gradekit.prove.symbolic_access import Accesses
from gradekit.prove.terms import Term, Truth
from gradekit.prove.walk import Walk


def accesses(
    module: Module,
    file: str,
    arguments: Sequence[Any],
    grid: Sequence[Term],
    hypotheses: Sequence[Truth],
    solver: Solver,
) -> Accesses:
    """The accesses of a kernel; `arguments` are Terms, Truths, Pointers or OTHER."""
    found = Walk(module, file, arguments, grid, hypotheses, solver).accesses
    if not found.reads & {base for base in found.stored if base is not None}:
        return found
    constant = frozenset(range(len(arguments))) - {base for base in found.stored if base is not None}
    return Walk(module, file, arguments, grid, hypotheses, solver, constant).accesses
