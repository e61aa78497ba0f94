"""The numbers that limit what a kernel's examples have shown: sizes may lie beyond them."""

from __future__ import annotations

from gradekit.engine import Op
from gradekit.unseen.kernel_branches import KernelText

_LIMITING = frozenset({"arith.cmpi", "arith.remsi", "arith.remui", "arith.minsi", "arith.minui", "arith.maxsi"})

_NARROW = {"i8": 1 << 7, "i16": 1 << 15}
"""From which number on an integer of so few bits is negative."""

_SHIFTS = frozenset({"arith.addi", "arith.subi"})


def limits_in(text: KernelText) -> set[int]:
    """Whole numbers that sizes may lie beyond: those that the kernel compares or takes remainders with, or adds to what
    it compares; those that integers of few bits cannot be; and where its loops of a fixed length end, in steps or in
    tiles."""
    tiles = [int(op.attributes["end"]) for op in text.ops if op.name == "tt.make_range"]
    limiting = [op for op in text.ops if op.name in _LIMITING]
    shifted = [made for op in limiting for made in map(text.made.get, op.operands) if made and made.name in _SHIFTS]
    found = {number for op in (*limiting, *shifted) for number in _constants(text, op)}
    found |= {_NARROW[op.result_types[0].element] for op in text.ops if _narrows(op)}
    for op in text.ops:
        bounds = _constants(text, op) if op.name == "scf.for" else []
        if len(bounds) == 3 and bounds[2] > 0:
            start, stop, step = bounds
            found |= {stop, *((stop - start) // step * tile for tile in tiles)}
    return found


def _narrows(op: Op) -> bool:
    return op.name == "arith.trunci" and op.result_types[0].element in _NARROW


def _constants(text: KernelText, op: Op) -> list[int]:
    made = (text.made.get(name) for name in op.operands[:3])
    values = (one.attributes.get("value") for one in made if one is not None and one.name == "arith.constant")
    return [value for value in values if type(value) is int]
