"""Which of a kernel's values decide where it reads and writes: only those are followed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradekit.engine import Function, Op, Region

MEMORY = {
    "tt.load": (0, 1), "tt.store": (0, 2), "tt.atomic_rmw": (0, 2), "tt.atomic_cas": (0,), "tt.atomic_load": (0, 1),
    "tt.atomic_store": (0, 2), "tt.atomic_poll": (0,),
}  # fmt: skip
"""The operands of each operation on memory that are addresses and masks."""

_DESCRIPTORS = ("tt.descriptor_", "tt.experimental_descriptor_")
_BRANCHES = ("scf.if", "scf.while", "cf.cond_br", "cf.br", "scf.condition", "tt.return")


def needed(function: Function) -> frozenset[str]:
    """The names of the values on which an address, a mask, a loop's bounds or a branch depends."""
    found: set[str] = set()
    size = -1
    operations = [*operations_of(function.body)]
    while size != len(found):
        size = len(found)
        for op in reversed(operations):
            found.update(_roots(op))
            found.update(_through(op, found))
    return frozenset(found)


def operations_of(region: Region) -> Iterator[Op]:
    """Every operation of a region, those of inner regions after the one that has them."""
    for block in region.blocks:
        for op in block.ops:
            yield op
            for inner in op.regions:
                yield from operations_of(inner)


def _roots(op: Op) -> Sequence[str]:
    if op.name in MEMORY:
        return [op.operands[position] for position in MEMORY[op.name] if position < len(op.operands)]
    if op.name.startswith(_DESCRIPTORS):
        return op.operands
    if op.name == "scf.for":
        return op.operands[:3]
    if op.name in ("cf.cond_br", "scf.if", "scf.condition"):
        return op.operands[:1]
    return op.operands if op.name == "tt.call" else ()


def _through(op: Op, found: set[str]) -> Iterator[str]:
    """What the needed ones among the results of `op` are made of."""
    if op.name in ("scf.for", "scf.while", "scf.if", "scf.execute_region"):
        yield from _regions(op, found)
    elif any(result in found for result in op.results):
        yield from op.operands
        yield from (name for inner in op.regions for one in operations_of(inner) for name in one.operands)
    for _, operands in op.successors:
        yield from operands


def _regions(op: Op, found: set[str]) -> Iterator[str]:
    """A carried value is needed in every place, where it is in one."""
    initial = op.operands[{"scf.for": 3, "scf.if": 1}.get(op.name, 0) :]
    columns: list[Sequence[str]] = [op.results, initial]
    for region in op.regions:
        block = region.blocks[0]
        skipped = 1 if op.name == "scf.for" else 0
        last = block.ops[-1] if block.ops else None
        columns.append(block.arguments[skipped:])
        if last is not None:
            columns.append(last.operands[1 if last.name == "scf.condition" else 0 :])
    if op.name == "scf.while":
        everything = [name for column in columns for name in column]
        yield from everything if any(name in found for name in everything) else ()
        return
    for position in range(max(map(len, columns))):
        same = [column[position] for column in columns if position < len(column)]
        if any(name in found for name in same):
            yield from same
