"""The form of a kernel: its operations on floats, whatever the sizes of its tiles, its addresses and its constants."""

from __future__ import annotations

import functools

from gradekit.engine.kernel_facts import every_operation, parsed


@functools.lru_cache(maxsize=512)
def form_of(ttir: str) -> tuple[tuple[str, ...], ...]:
    """Equal for kernels that do the same to floats, in tiles of any size: the names of operations, with their types."""
    return tuple(
        (op.name, *(type.element for type in op.result_types))
        for op in every_operation(parsed(ttir))
        if any("f" in type.element for type in (*op.result_types, *op.operand_types))
    )
