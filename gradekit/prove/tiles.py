"""Operations that make, move and reshape tiles: which element of which operand each lane of the result has."""

from __future__ import annotations

from gradekit.engine import Op
from gradekit.prove.integer_rules import Walking, rule, selected
from gradekit.prove.symbolic_values import OTHER, SymbolicPointer, Value, at_lanes, lane, lanes, reshaped
from gradekit.prove.terms import ZERO, Term, equal


@rule("tt.make_range")
def _range(walk: Walking, op: Op) -> Value:
    start = op.attributes["start"]
    return lane(0, op.attributes["end"] - start) + start


@rule("tt.splat", "tt.unsplat", "ttg.convert_layout")
def _same(walk: Walking, op: Op, a: Value) -> Value:
    return (
        at_lanes(a, op.operand_types[0].shape, [ZERO] * len(op.operand_types[0].shape))
        if op.name == "tt.unsplat"
        else a
    )


@rule("tt.expand_dims")
def _expand_dims(walk: Walking, op: Op, a: Value) -> Value:
    axis = op.attributes["axis"]
    places = lanes(op.result_types[0].shape)
    return at_lanes(a, op.operand_types[0].shape, places[:axis] + places[axis + 1 :])


@rule("tt.broadcast")
def _broadcast(walk: Walking, op: Op, a: Value) -> Value:
    old, new = op.operand_types[0].shape, op.result_types[0].shape
    places = [ZERO if size == 1 else place for size, place in zip(old, lanes(new), strict=True)]
    return at_lanes(a, old, places)


@rule("tt.trans")
def _transpose(walk: Walking, op: Op, a: Value) -> Value:
    order, new = op.attributes["order"], lanes(op.result_types[0].shape)
    places = [new[order.index(axis)] for axis in range(len(order))]
    return at_lanes(a, op.operand_types[0].shape, places)


@rule("tt.reshape")
def _reshape(walk: Walking, op: Op, a: Value) -> Value:
    if op.attributes.get("allow_reorder"):
        return OTHER
    return reshaped(a, op.operand_types[0].shape, op.result_types[0].shape)


@rule("tt.join")
def _join(walk: Walking, op: Op, a: Value, b: Value) -> Value:
    shape = op.result_types[0].shape
    return selected(equal(lane(len(shape) - 1, 2), ZERO), a, b)


@rule("tt.addptr")
def _move(walk: Walking, op: Op, pointer: Value, by: Value) -> Value:
    if not isinstance(pointer, SymbolicPointer) or not isinstance(by, Term):
        return OTHER
    return SymbolicPointer(pointer.base, pointer.offset + by, pointer.itemsize)
