"""Loads, stores and atomics, by pointers and by tensor descriptors: which elements they touch, and where."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gradekit.engine.frame import known_itemsize
from gradekit.engine.masked_lanes import mask_of
from gradekit.engine.registry import enters
from gradekit.engine.ttir import Module, Op
from gradekit.engine.ttir_locations import line_of
from gradekit.prove.solve import Solver
from gradekit.prove.symbolic_values import OTHER, SymbolicAccess, SymbolicPointer, Tile, Value, lanes
from gradekit.prove.terms import TRUE, ZERO, Atom, Term, Truth, both, choose, free, of_atom
from gradekit.prove.walk import MEMORY, Walk

DATA = "its address depends on data, or on arithmetic that is not followed"


@enters(MEMORY, "tt.load", "tt.atomic_load")
def _load(walk: Walk, op: Op) -> list[Value]:
    return [_loaded(walk, op, _by_pointer(walk, op, "load"))]


def _loaded(walk: Walk, op: Op, access: SymbolicAccess) -> Value:
    """An element of a tensor that the kernel does not write to is the same whenever it is read."""
    type, base = op.result_types[0], access.base
    is_integer = type.element[0] == "i" and type.element != "i1" and access.itemsize == known_itemsize(type)
    is_constant = walk.constant is None or base in walk.constant
    if base is None or op.name != "tt.load" or not is_integer or not is_constant:
        return walk.unknown(type)
    half = 1 << (8 * access.itemsize - 1)
    walk.reads.add(base)
    value = of_atom(Atom("read", (f"argument {base}", access.offset), (-half, half - 1)))
    other = walk.get(op.operands[2]) if len(op.operands) > 2 else walk.unknown(type)
    return choose(access.mask, value, other) if isinstance(other, Term) else walk.unknown(type)


@enters(MEMORY, "tt.store", "tt.atomic_store", "tt.atomic_rmw", "tt.atomic_cas", "tt.atomic_poll")
def _store(walk: Walk, op: Op) -> list[Value]:
    _by_pointer(walk, op, "store" if op.name == "tt.store" else "atomic")
    return [walk.unknown(type) for type in op.result_types]


def _by_pointer(walk: Walk, op: Op, kind: str) -> SymbolicAccess:
    target, type = walk.get(op.operands[0]), op.operand_types[0]
    masked = mask_of(op)
    mask = walk.get(masked[0]) if masked else TRUE
    access = _new(walk, op, kind, type.shape)
    if isinstance(target, SymbolicPointer):
        access = replace(access, base=target.base, offset=target.offset, itemsize=target.itemsize)
    access = replace(
        access, mask=mask if isinstance(mask, Truth) else free(f"mask {access.order}"),
        premises=walk.premises(op.operands[:1]), premises_always=walk.path_premises | walk.premises(masked),
        why="" if isinstance(target, SymbolicPointer) else DATA,
    )  # fmt: skip
    walk.touch(access)
    return access


def _new(walk: Walk, op: Op, kind: str, shape: tuple[int, ...]) -> SymbolicAccess:
    order = len(walk.accesses)
    change = str(op.attributes.get("kind", op.name)).lower() if kind == "atomic" else ""
    line = line_of(op.location, walk.file)
    return SymbolicAccess(kind, line, order, None, ZERO, TRUE, walk.path, shape, 1, walk.turns, change=change)


# --- tensor descriptors -----------------------------------------------------------------------------------------------


@enters(MEMORY, "tt.make_tensor_descriptor")
def _tile(walk: Walk, op: Op) -> list[Value]:
    base, *numbers = (walk.get(name) for name in op.operands)
    pointee = op.result_types[0].pointee
    if not isinstance(base, SymbolicPointer) or pointee is None or not all(isinstance(n, Term) for n in numbers):
        return [OTHER]
    rank = len(pointee.shape)
    return [Tile(base, tuple(numbers[:rank]), tuple(numbers[rank:]), pointee.shape)]  # type: ignore[arg-type]


def _by_tile(walk: Walk, op: Op, kind: str, tile: Tile, places: Sequence[Value]) -> None:
    access = _new(walk, op, kind, tile.block)
    starts = [place for place in places if isinstance(place, Term)]
    known, offset, inside = len(starts) == len(places), tile.base.offset, []
    for axis, (start, lane) in enumerate(zip(starts, lanes(tile.block), strict=False)):
        at = start + lane
        offset = offset + at * tile.strides[axis]
        inside += [at >= 0, at < tile.shape[axis]]
    premises = walk.premises(op.operands)
    access = replace(
        access, base=tile.base.base if known else None, offset=offset, mask=both(*inside), itemsize=tile.base.itemsize,
        premises=premises, premises_always=walk.path_premises | premises, why="" if known else DATA,
    )  # fmt: skip
    walk.touch(access)


@enters(MEMORY, *(f"tt.descriptor_{name}" for name in ("load", "store", "reduce", "gather", "scatter")))
def _descriptor(walk: Walk, op: Op) -> list[Value]:
    """A descriptor checks its bounds always; rows that an index tensor chooses are not followed."""
    kind = "load" if op.results else "atomic" if op.name.endswith("reduce") else "store"
    tile = walk.get(op.operands[0])
    if isinstance(tile, Tile) and not op.name.endswith(("gather", "scatter")):
        indices = op.operands[1 if op.results else 2 :]
        _by_tile(walk, op, kind, tile, [walk.get(name) for name in indices])
    else:
        walk.touch(replace(_new(walk, op, kind, ()), why=DATA, premises_always=walk.path_premises))
    return [walk.unknown(type) for type in op.result_types]


def accesses(
    module: Module, file: str, arguments: Sequence[Any], grid: Sequence[Term], hypotheses: Sequence[Truth],
    solver: Solver,
) -> list[SymbolicAccess]:  # fmt: skip
    """The accesses of a kernel; `arguments` are Terms, Truths, Pointers or OTHER."""
    walk = Walk(module, file, arguments, grid, hypotheses, solver)
    stored = {access.base for access in walk.accesses if access.kind != "load" and access.base is not None}
    if walk.reads & stored:
        walk = Walk(module, file, arguments, grid, hypotheses, solver, frozenset(range(len(arguments))) - stored)
    return walk.accesses
