"""tt.* operations that make, move and reshape tiles, and the program's place in the grid. They compute nothing."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gradekit.engine import integers
from gradekit.engine.conditions import FILLINGS
from gradekit.engine.frame import PROGRAM, Frame, dtype_of, itemsize_of
from gradekit.engine.registry import Evaluator, compiles, evaluates
from gradekit.engine.ttir import Op, Type
from gradekit.engine.values import Affine, Integer, Pointer, Value, absolute, dense, over_parts

Steps = tuple[int, ...]


@evaluates("tt.get_program_id")
def _evaluate_program_id(frame: Frame, op: Op) -> Integer:
    """x runs fastest: linear id = x + width * (y + height * z)."""
    width, height, depth = frame.context.grid
    below, size = ((1, width), (width, height), (width * height, depth))[op.attributes["axis"]]
    linear: Integer = frame.values[PROGRAM]
    shape = (frame.count,)
    place = integers.divsi(linear, below, 64, shape) if below > 1 else linear
    return integers.trunci(integers.remsi(place, size, 64, shape), 32, shape)  # type: ignore[return-value]


@evaluates("tt.get_num_programs")
def _evaluate_num_programs(frame: Frame, op: Op) -> int:
    return frame.context.grid[op.attributes["axis"]]


@compiles("tt.make_range")
def _compile_make_range(op: Op) -> Evaluator:
    start, end = op.attributes["start"], op.attributes["end"]
    numbers = Affine(start, (0, 1), start, end - 1)
    return lambda frame: numbers


# --- axes of size 1 come and go without a copy ------------------------------------------------------------------------


def reshaped(move: Callable[[Tensor], Tensor], insert: Callable[[Steps], Steps]) -> Callable[[Any], Any]:
    """What applies `move` to the tensors of an int, Affine or tensor, and `insert` to its steps."""

    def change(part: Any) -> Any:
        if isinstance(part, Tensor):
            return move(part)
        if isinstance(part, Affine):
            base = part.base if isinstance(part.base, int) else move(part.base)
            return Affine(base, insert(part.steps), part.low, part.high)
        return part

    return change


def splat(rank: int) -> Callable[[Any], Any]:
    """What makes a number of each program one of a tile with `rank` axes."""
    ones, zeros = (1,) * rank, (0,) * rank
    return reshaped(lambda t: t.view(-1, *ones), lambda steps: steps + zeros)


def _changing(op: Op, change: Callable[[Any], Any]) -> Evaluator:
    (name,) = op.operands
    return lambda frame: value if isinstance(value := frame.values[name], int) else over_parts(value, change)


@compiles("tt.splat")
def _compile_splat(op: Op) -> Evaluator:
    return _changing(op, splat(len(op.result_types[0].shape)))


@compiles("tt.expand_dims")
def _compile_expand_dims(op: Op) -> Evaluator:
    axis = op.attributes["axis"] + 1
    return _changing(op, reshaped(lambda t: t.unsqueeze(axis), lambda steps: (*steps[:axis], 0, *steps[axis:])))


@compiles("tt.trans")
def _compile_trans(op: Op) -> Evaluator:
    order = [0, *(axis + 1 for axis in op.attributes["order"])]
    return _changing(op, reshaped(lambda t: t.permute(order), lambda steps: tuple(steps[axis] for axis in order)))


@compiles("tt.broadcast", "ttg.convert_layout")
def _compile_broadcast(op: Op) -> Evaluator:
    """A value is broadcast when an operation needs it so."""
    (name,) = op.operands
    return lambda frame: frame.values[name]


@evaluates("tt.unsplat")
def _evaluate_unsplat(frame: Frame, op: Op) -> Tensor:
    return frame.tensor(op, 0).flatten(1)[:, 0]


# --- reshaping needs all elements -------------------------------------------------------------------------------------


def _full(frame: Frame, op: Op, position: int) -> Tensor | Pointer:
    """An operand with its tile at full size; a pointer with an int64 offset for each element."""
    value, type = frame.operand(op, position), op.operand_types[position]
    if not isinstance(value, Pointer):
        return frame.full(op, position)
    offset = dense(value.offset, torch.int64, frame.shape(type))
    return Pointer(value.storage, offset.expand([offset.shape[0], *type.shape]), value.itemsize)


@evaluates("tt.reshape")
def _evaluate_reshape(frame: Frame, op: Op) -> Value:
    value, shape = frame.operand(op, 0), op.result_types[0].shape
    if isinstance(value, int):
        return value
    return over_parts(_full(frame, op, 0), lambda t: t.reshape(t.shape[0], *shape))


@evaluates("tt.join")
def _evaluate_join(frame: Frame, op: Op) -> Value:
    left, right = _full(frame, op, 0), _full(frame, op, 1)
    if isinstance(left, Pointer) and isinstance(right, Pointer):
        if left.storage is not right.storage:
            left, right = absolute(left), absolute(right)
        return Pointer(left.storage, _together(left.offset, right.offset, torch.stack, -1), left.itemsize)
    return _together(left, right, torch.stack, -1)


def _together(left: Any, right: Any, combine: Any, axis: int) -> Tensor:
    count = max(left.shape[0], right.shape[0])
    return combine([side.expand(count, *side.shape[1:]) for side in (left, right)], axis)


@evaluates("tt.split")
def _evaluate_split(frame: Frame, op: Op) -> tuple[Value, Value]:
    value = _full(frame, op, 0)
    return over_parts(value, lambda t: t[..., 0]), over_parts(value, lambda t: t[..., 1])


@evaluates("tt.cat")
def _evaluate_cat(frame: Frame, op: Op) -> Value:
    return _together(frame.full(op, 0), frame.full(op, 1), torch.cat, 1)


@evaluates("tt.gather")
def _evaluate_gather(frame: Frame, op: Op) -> Tensor:
    source, index = frame.full(op, 0), frame.full(op, 1).to(torch.int64)
    count, axis = max(source.shape[0], index.shape[0]), op.attributes["axis"] + 1
    source, index = source.expand(count, *source.shape[1:]), index.expand(count, *index.shape[1:])
    last, anything = source.shape[axis] - 1, torch.full([source.element_size()], FILLINGS[0], dtype=torch.uint8)
    beyond = (index < 0) | (index > last)  # where Triton leaves it undefined
    return torch.where(beyond, anything.view(source.dtype), source.gather(axis, index.clamp(0, last)))


@evaluates("tt.histogram")
def _evaluate_histogram(frame: Frame, op: Op) -> Tensor:
    """Counts of 0..bins-1. Triton defines no count of other numbers: each is counted by its low bits, as cards do."""
    value, bins = frame.full(op, 0).to(torch.int64), op.result_types[0].shape[0]
    counted = frame.full(op, 1) if len(op.operands) > 1 else torch.ones_like(value, dtype=torch.bool)
    value, counted = torch.broadcast_tensors(value % bins, counted)
    counts = torch.zeros(value.shape[0], bins, dtype=torch.int64)
    return counts.scatter_add_(1, value, counted.to(torch.int64)).to(dtype_of(op.result_types[0]))


# --- pointers ---------------------------------------------------------------------------------------------------------


@compiles("tt.addptr")
def _compile_addptr(op: Op) -> Evaluator:
    (pointer, offset), tile = op.operands, op.result_types[0].shape
    return lambda frame: move(frame.values[pointer], frame.values[offset], (frame.count, *tile))


def move(pointer: Pointer, elements: Integer, shape: tuple[int, ...]) -> Pointer:
    """`pointer` moved by a number of its elements."""
    elements = wide(elements)
    if pointer.storage is None:
        elements = integers.muli(elements, pointer.itemsize, 64, shape)
    return Pointer(pointer.storage, integers.addi(pointer.offset, elements, 64, shape), pointer.itemsize)


def wide(value: Integer) -> Integer:
    """The same as int64, where it is a tensor."""
    return value.to(torch.int64) if isinstance(value, Tensor) else value


@evaluates("tt.ptr_to_int")
def _evaluate_ptr_to_int(frame: Frame, op: Op) -> Value:
    offset: Value = absolute(frame.operand(op, 0)).offset
    return offset


@evaluates("tt.int_to_ptr")
def _evaluate_int_to_ptr(frame: Frame, op: Op) -> Pointer:
    type = op.result_types[0]
    return Pointer(None, wide(frame.operand(op, 0)), pointee_size(type))


def pointee_size(type: Type) -> int:
    """Bytes of what a pointer type points to."""
    assert type.pointee is not None
    return itemsize_of(type.pointee)
