"""Which of a kernel's values decide where it reads and writes: only those are followed."""

from __future__ import annotations

from collections.abc import Sequence

from gradekit.engine import Function, Op
from gradekit.engine.def_use import DefUse
from gradekit.engine.kernel_facts import operations

MEMORY = {
    "tt.load": (0, 1), "tt.store": (0, 2), "tt.atomic_rmw": (0, 2), "tt.atomic_cas": (0,), "tt.atomic_load": (0, 1),
    "tt.atomic_store": (0, 2), "tt.atomic_poll": (0,),
}  # fmt: skip
"""The operands of each operation on memory that are addresses and masks."""

_DESCRIPTORS = ("tt.descriptor_", "tt.experimental_descriptor_")


def needed(function: Function) -> frozenset[str]:
    """The names of the values on which an address, a mask, a loop's bounds or a branch depends."""
    return DefUse([function]).behind(name for op in operations(function.body) for name in _deciding(op))


def _deciding(op: Op) -> Sequence[str]:
    handed = [name for _, operands in op.successors for name in operands]
    if op.name in MEMORY:
        return [op.operands[position] for position in MEMORY[op.name] if position < len(op.operands)]
    if op.name.startswith(_DESCRIPTORS) or op.name == "tt.call":
        return op.operands
    if op.name == "scf.for":
        return op.operands[:3]
    return [*handed, *(op.operands[:1] if op.name in ("cf.cond_br", "scf.if", "scf.condition") else ())]
