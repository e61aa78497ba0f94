"""How long values live, and what a block costs: worked out from the text, before anything runs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradekit.engine.ttir import Block, Op, Region, Type

_BYTES = {"i1": 1, "i8": 1, "i16": 2, "f16": 2, "bf16": 2, "i32": 4, "f32": 4}
_WIDEST = 8
_PRODUCTS = 16
"""Products of a dot that take as long as one element of another operation."""


def last_uses(block: Block, escaping: Collection[str]) -> list[tuple[str, ...]]:
    """For each operation of `block`, the values defined in the block that nothing needs after it; those that are
    `escaping`, because other blocks may use them, are never among them."""
    defined = {*block.arguments, *(name for op in block.ops for name in op.results)} - {*escaping}
    dead: list[tuple[str, ...]] = []
    needed = {*escaping}
    for op in reversed(block.ops):
        used = set(names_used(op))
        dead.append(tuple(name for name in {*used, *op.results} - needed if name in defined))
        needed |= used
    return dead[::-1]


def only_stored(block: Block) -> frozenset[str]:
    """The values that one store of the block needs, to store them, and nothing else there."""
    uses = Counter(name for op in block.ops for name in names_used(op))
    return frozenset(op.operands[1] for op in block.ops if op.name == "tt.store" and uses[op.operands[1]] == 1)


def names_used(op: Op) -> Iterator[str]:
    """The values that an operation needs, and those that the regions inside it need; those defined inside, too."""
    yield from op.operands
    for _, names in op.successors:
        yield from names
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                yield from names_used(inner)


def shared_names(region: Region) -> frozenset[str]:
    """The values that are used in another block of the region than the one that defines them."""
    if len(region.blocks) < 2:
        return frozenset()
    found: set[str] = set()
    for block in region.blocks:
        own = {*block.arguments, *(name for op in block.ops for name in op.results)}
        found |= {name for op in block.ops for name in names_used(op)} - own
    return frozenset(found)


def elements(op: Op) -> int:
    """The elements that an operation makes or reads for one program, whichever are more."""
    most = max((math.prod(type.shape) for type in (*op.result_types, *op.operand_types)), default=1)
    if op.name in ("tt.dot", "tt.dot_scaled"):
        most += math.prod(op.result_types[0].shape) * op.operand_types[0].shape[-1] // _PRODUCTS
    return most


def peak_bytes(region: Region) -> int:
    """The most bytes of tiles that one program holds at a time while it runs `region`."""
    escaping = shared_names(region)
    return max((_peak(block, escaping) for block in region.blocks), default=0)


def _peak(block: Block, escaping: Collection[str]) -> int:
    sizes = dict(zip(block.arguments, map(_size, block.argument_types), strict=True))
    live = peak = sum(sizes.values())
    for op, dead in zip(block.ops, last_uses(block, escaping), strict=True):
        made = dict(zip(op.results, map(_size, op.result_types), strict=True))
        inside = max((peak_bytes(region) for region in op.regions), default=0)
        peak = max(peak, live + sum(made.values()) + inside)
        sizes |= made
        live += sum(made.values()) - sum(sizes.pop(name, 0) for name in dead)
    return peak


def _size(type: Type) -> int:
    return math.prod(type.shape) * _BYTES.get(type.element, _WIDEST)
