"""tt.* operations on memory: plain and block loads and stores, tensor descriptors, atomics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from gradekit.engine import integers
from gradekit.engine.atomics import UPDATES, Update, compare_and_swap, keep, overwrite
from gradekit.engine.branch_coverage import note_mask
from gradekit.engine.budget import Unsupported
from gradekit.engine.frame import Frame, dtype_of
from gradekit.engine.kernel_facts import leaves_lanes_undefined
from gradekit.engine.ops_tile import move, pointee_size
from gradekit.engine.registry import Evaluator, compiles, evaluates
from gradekit.engine.values import (
    Affine,
    Below,
    BlockPointer,
    Conjunction,
    Integer,
    Pointer,
    Unmade,
    Value,
    absolute,
    dense,
)

if TYPE_CHECKING:
    from gradekit.engine.ttir import Op, Type

PAD_NAN = 2

# --- pointers ---------------------------------------------------------------------------------------------------------


def memory_dtype(type: Type) -> torch.dtype:
    """How elements of a type lie in memory: a boolean as a byte, a pointer as a 64-bit address."""
    if type.element == "ptr":
        return torch.int64
    return torch.int8 if type.element == "i1" else dtype_of(type)


@compiles("tt.load")
def _compile_load(op: Op) -> Evaluator:
    type, (source, masked, replaced) = op.result_types[0], (*op.operands, None, None)[:3]
    dtype, tile = memory_dtype(type), type.shape
    leaves_undefined = leaves_lanes_undefined(op)

    def step(frame: Frame) -> Value:
        values = frame.values
        if op.attributes.get("isVolatile"):
            frame.context.pause()
        pointer: Pointer | BlockPointer = values[source]  # type: ignore[index]
        if isinstance(pointer, BlockPointer):
            return load_block(frame, op, pointer, op.attributes.get("boundaryCheck", ()), op.attributes.get("padding"))
        mask = None if masked is None else values[masked]
        other = values[replaced] if replaced is not None else _undefined(frame, op) if leaves_undefined else None
        if isinstance(other, Pointer):
            other = absolute(other).offset
        if mask is not None:
            note_mask(frame, op, mask, (frame.count, *tile))
        loaded = frame.context.memory.load(pointer, mask, other, dtype, (frame.count, *tile), frame.access(op))
        return in_registers(loaded, type)

    return step


def _undefined(frame: Frame, op: Op) -> Tensor | None:
    """What lanes without a value get: None for zeros, as on NVIDIA's cards, or bytes that nobody would expect."""
    conditions = frame.context.conditions
    if conditions.filled is None or conditions.line not in (None, frame.context.line(op)):
        return None
    dtype, rank = memory_dtype(op.result_types[0]), len(op.result_types[0].shape)
    return torch.full([dtype.itemsize], conditions.filled, dtype=torch.uint8).view(dtype).view([1] * (1 + rank))


def in_registers(loaded: Tensor, type: Type) -> Value:
    """Elements of `type` as they lie in memory, in the form that the type has in registers."""
    if type.element == "i1":
        return loaded != 0
    if type.element == "ptr":
        return Pointer(None, loaded, pointee_size(type))
    return loaded


def from_memory(frame: Frame, op: Op, pointer: Pointer, mask: Value | None, other: Value | None, type: Type) -> Value:
    """Elements of `type` at `pointer`."""
    dtype, shape = memory_dtype(type), frame.shape(type)
    return in_registers(frame.context.memory.load(pointer, mask, other, dtype, shape, frame.access(op)), type)


def to_memory(frame: Frame, value: Value, type: Type) -> Tensor:
    """The inverse: what a store writes."""
    if isinstance(value, Pointer):
        value = absolute(value).offset
        return dense(value, torch.int64, frame.shape(type))
    stored = dense(value, dtype_of(type), frame.shape(type))
    return stored.to(torch.int8) if type.element == "i1" else stored


@compiles("tt.store")
def _compile_store(op: Op) -> Evaluator:
    type, (target, stored, masked) = op.operand_types[1], (*op.operands, None)[:3]

    def step(frame: Frame) -> None:
        values = frame.values
        pointer, value = values[target], values[stored]  # type: ignore[index]
        if not isinstance(value, Unmade) or frame.context.memory.explains or isinstance(pointer, BlockPointer):
            value = to_memory(frame, value, type)
        if isinstance(pointer, BlockPointer):
            store_block(frame, op, pointer, value, op.attributes.get("boundaryCheck", ()))
            return
        mask = None if masked is None else values[masked]
        if mask is not None:
            note_mask(frame, op, mask, frame.shape(type))
        frame.context.memory.store(pointer, value, mask, frame.shape(type), frame.access(op))

    return step


# --- atomics ----------------------------------------------------------------------------------------------------------


@evaluates("tt.atomic_rmw")
def _evaluate_atomic_rmw(frame: Frame, op: Op) -> Value:
    type = op.operand_types[1]
    mask = frame.operand(op, 2) if len(op.operands) > 2 else None
    return _atomic(frame, op, _change(frame, op, type), (to_memory(frame, frame.operand(op, 1), type),), mask, type)


def _change(frame: Frame, op: Op, type: Type) -> Update:
    """The update that the operation's kind names; floats have a largest and smallest of their own."""
    kind = str(op.attributes["kind"]).lower()
    own = "f" + kind
    change = UPDATES.get(own if own in UPDATES and dtype_of(type).is_floating_point else kind)
    if change is None:
        raise Unsupported(f"{op.name} {kind}", frame.context.line(op))
    return change


@evaluates("tt.atomic_cas")
def _evaluate_atomic_cas(frame: Frame, op: Op) -> Value:
    type = op.operand_types[1]
    operands = tuple(to_memory(frame, frame.operand(op, position), type) for position in (1, 2))
    return _atomic(frame, op, compare_and_swap, operands, None, type)


@evaluates("tt.atomic_load")
def _evaluate_atomic_load(frame: Frame, op: Op) -> Value:
    mask = frame.operand(op, 1) if len(op.operands) > 1 else None
    return _atomic_load(frame, op, mask, op.result_types[0])


def _atomic_load(frame: Frame, op: Op, mask: Value | None, type: Type) -> Tensor:
    nothing = torch.zeros([1] * (1 + len(type.shape)), dtype=torch.int64).to(memory_dtype(type))
    return _atomic(frame, op, keep, (nothing,), mask, type)


@evaluates("tt.atomic_store")
def _evaluate_atomic_store(frame: Frame, op: Op) -> None:
    type = op.operand_types[1]
    mask = frame.operand(op, 2) if len(op.operands) > 2 else None
    _atomic(frame, op, overwrite, (to_memory(frame, frame.operand(op, 1), type),), mask, type)


@evaluates("tt.atomic_poll")
def _evaluate_atomic_poll(frame: Frame, op: Op) -> Tensor:
    """Programs run together here, so a value that is not there yet will not come while one waits for it."""
    type = op.operand_types[1]
    found = _atomic_load(frame, op, None, type) == to_memory(frame, frame.operand(op, 1), type)
    if len(op.operands) < 3 and not bool(found.all()):
        raise Unsupported("tt.atomic_poll that has to wait", frame.context.line(op))
    return found


def _atomic(frame: Frame, op: Op, change: Any, operands: tuple[Tensor, ...], mask: Value | None, type: Type) -> Tensor:
    frame.context.pause()
    shape, access = frame.shape(type), frame.access(op)
    return frame.context.memory.atomic(frame.operand(op, 0), change, operands, mask, shape, access)


# --- blocks: tensor descriptors and block pointers --------------------------------------------------------------------


@evaluates("tt.make_tensor_ptr")
def _evaluate_make_tensor_ptr(frame: Frame, op: Op) -> BlockPointer:
    base, *numbers = (frame.get(name) for name in op.operands)
    tile = op.result_types[0].pointee
    assert tile is not None
    rank = len(tile.shape)
    shape, strides, offsets = numbers[:rank], numbers[rank : 2 * rank], numbers[2 * rank :]
    return BlockPointer(base, tuple(shape), tuple(strides), tuple(offsets), tile.shape)


@evaluates("tt.make_tensor_descriptor")
def _evaluate_make_tensor_descriptor(frame: Frame, op: Op) -> BlockPointer:
    base, *numbers = (frame.get(name) for name in op.operands)
    tile = op.result_types[0].pointee
    assert tile is not None
    rank = len(tile.shape)
    padding = "nan" if op.attributes.get("padding") == PAD_NAN else "zero"
    return BlockPointer(base, tuple(numbers[:rank]), tuple(numbers[rank:]), (0,) * rank, tile.shape, padding)


@evaluates("tt.advance")
def _evaluate_advance(frame: Frame, op: Op) -> BlockPointer:
    block, *steps = (frame.get(name) for name in op.operands)
    offsets = tuple(integers.addi(a, b, 32, (frame.count,)) for a, b in zip(block.offsets, steps, strict=True))
    return BlockPointer(block.base, block.shape, block.strides, offsets, block.block, block.padding)


def _raised(value: Integer, rank: int) -> Integer:
    """A number for each program, before the axes of a tile."""
    if isinstance(value, Tensor):
        return value.to(torch.int64).view(-1, *[1] * rank)
    if isinstance(value, Affine):
        base = _raised(value.base, rank) if isinstance(value.base, Tensor) else value.base
        return Affine(base, (*value.steps, *[0] * rank), value.low, value.high)  # type: ignore[arg-type]
    return value


def locate(frame: Frame, block: BlockPointer, offsets: tuple[Any, ...], axes: Any) -> tuple[Pointer, Value]:
    """The element pointers of the tile at `offsets`, and the mask of those inside the tensor along `axes`."""
    rank = len(block.block)
    shape = (frame.count, *block.block)
    pointer, mask = _splat(block.base, rank), []
    for axis, size in enumerate(block.block):
        along = Affine(0, tuple(int(a == axis + 1) for a in range(rank + 1)), 0, size - 1)
        index = integers.addi(_raised(offsets[axis], rank), along, 64, shape)
        step = integers.muli(index, _raised(block.strides[axis], rank), 64, shape)
        pointer = move(pointer, step, shape)
        if axis in axes:
            mask.append(integers.cmpi("sge", index, 0, 64, shape))
            mask.append(integers.cmpi("slt", index, _raised(block.shape[axis], rank), 64, shape))
    return pointer, _all_of(mask)


def _splat(pointer: Pointer, rank: int) -> Pointer:
    return Pointer(pointer.storage, _raised(pointer.offset, rank), pointer.itemsize)


def _all_of(masks: list[bool | Below | Tensor]) -> Value:
    if any(mask is False for mask in masks):
        return False
    factors = tuple(mask for mask in masks if not isinstance(mask, bool))
    return Conjunction(factors) if factors else True


def load_block(frame: Frame, op: Op, block: BlockPointer, axes: Any, padding: Any) -> Value:
    """The tile at the block's own offsets; elements outside along the checked `axes` are padding."""
    pointer, mask = locate(frame, block, block.offsets, axes)
    if axes:
        note_mask(frame, op, mask, (frame.count, *block.block))
    undefined = _undefined(frame, op) if leaves_lanes_undefined(op) else None
    other = _padding(padding, op.result_types[0]) if undefined is None else undefined
    return from_memory(frame, op, pointer, mask, other, op.result_types[0])


def _padding(padding: Any, type: Type) -> Value:
    wants_nan = padding in (PAD_NAN, "nan") and dtype_of(type).is_floating_point
    return torch.full([1] * (1 + len(type.shape)), float("nan") if wants_nan else 0).to(memory_dtype(type))


def store_block(frame: Frame, op: Op, block: BlockPointer, value: Tensor, axes: Any) -> None:
    """Writes a tile at the block's own offsets; elements outside along the checked `axes` are dropped."""
    pointer, mask = locate(frame, block, block.offsets, axes)
    if axes:
        note_mask(frame, op, mask, (frame.count, *block.block))
    frame.context.memory.store(pointer, value, mask, (frame.count, *block.block), frame.access(op))


def _at(frame: Frame, block: BlockPointer, indices: list[Any]) -> tuple[Pointer, Value]:
    return locate(frame, block, tuple(indices), range(len(block.block)))


@evaluates("tt.descriptor_load")
def _evaluate_descriptor_load(frame: Frame, op: Op) -> Value:
    """A descriptor always checks its bounds; leading axes of size 1 may be dropped from the result."""
    block, *indices = (frame.get(name) for name in op.operands)
    pointer, mask = _at(frame, block, indices)
    type = op.result_types[0]
    other = _padding(block.padding, type).view([1] * (1 + len(block.block)))  # type: ignore[union-attr]
    dtype = memory_dtype(type)
    shape = (frame.count, *block.block)
    loaded = frame.context.memory.load(pointer, mask, other, dtype, shape, frame.access(op))
    if type.shape == block.block:
        return loaded
    return loaded.expand([loaded.shape[0], *block.block]).reshape(loaded.shape[0], *type.shape)


@evaluates("tt.descriptor_store")
def _evaluate_descriptor_store(frame: Frame, op: Op) -> None:
    block, value, *indices = (frame.get(name) for name in op.operands)
    tile = dense(value, dtype_of(op.operand_types[1]), frame.shape(op.operand_types[1]))
    tile = tile.expand([tile.shape[0], *op.operand_types[1].shape]).reshape(tile.shape[0], *block.block)
    pointer, mask = _at(frame, block, indices)
    frame.context.memory.store(pointer, tile, mask, (frame.count, *block.block), frame.access(op))


@evaluates("tt.descriptor_reduce")
def _evaluate_descriptor_reduce(frame: Frame, op: Op) -> None:
    block, value, *indices = (frame.get(name) for name in op.operands)
    type = op.operand_types[1]
    change = _change(frame, op, type)
    pointer, mask = _at(frame, block, indices)
    tile = dense(value, dtype_of(type), frame.shape(type))
    frame.context.memory.atomic(pointer, change, (tile,), mask, (frame.count, *block.block), frame.access(op))
