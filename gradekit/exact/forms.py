"""The form of a kernel: its operations on floats, whatever the sizes of its tiles, its addresses and its constants."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from gradekit.engine.kernel_facts import every_operation, operations, parsed
from gradekit.engine.ttir import Op


@functools.lru_cache(maxsize=512)
def form_of(ttir: str) -> tuple[tuple[str, ...], ...]:
    """Equal for kernels that do the same to floats, in tiles of any size: the names of operations, with their types."""
    return tuple(
        (op.name, *(type.element for type in op.result_types))
        for op in every_operation(parsed(ttir))
        if _has_floats(op)
    )


def decided_in(ttir: str, ways: Mapping[int, int]) -> tuple[int, ...]:
    """Which ways a kernel went where one condition decides about floats of a whole program, such as `if K > 6000`: by
    the number of an operation, as the engine's branch coverage has it. What is done one way alone is a form of its own.
    """
    ops = [*every_operation(parsed(ttir))]
    for_all = {result for op in ops if op.name == "tt.splat" for result in op.results}
    return tuple(ways.get(op.number, 0) for op in ops if _decides(op, for_all))


@functools.lru_cache(maxsize=512)
def constants_in(ttir: str) -> frozenset[str]:
    """The floats that a kernel's text has: another one may be another formula of the same form."""
    ops = (op for op in every_operation(parsed(ttir)) if op.name == "arith.constant" and _has_floats(op))
    return frozenset(str(op.attributes["value"]) for op in ops)


def _decides(op: Op, for_all: set[str]) -> bool:
    if op.name == "arith.select":
        return _has_floats(op) and (op.operands[0] in for_all or not op.operand_types[0].shape)
    return op.name == "scf.if" and any(_has_floats(one) for region in op.regions for one in operations(region))


def _has_floats(op: Op) -> bool:
    return any("f" in type.element for type in (*op.result_types, *op.operand_types))
