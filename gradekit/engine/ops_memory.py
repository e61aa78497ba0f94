"""tt.* operations on memory: loads and stores by pointers and by tensor descriptors, and atomics."""

import functools
from collections.abc import Sequence

import torch
from torch import Tensor

from gradekit.engine import integers
from gradekit.engine.atomics import UPDATES, Update, compare_and_swap, keep, overwrite
from gradekit.engine.branch_coverage import note_mask
from gradekit.engine.budget import Unsupported
from gradekit.engine.frame import Frame, dtype_of
from gradekit.engine.kernel_facts import leaves_lanes_undefined
from gradekit.engine.lanes import Access
from gradekit.engine.ops_tile import move, pointee_size, splat, wide
from gradekit.engine.registry import Evaluator, compiles, evaluates
from gradekit.engine.ttir import Op, Type
from gradekit.engine.values import (
    Affine,
    Below,
    Conjunction,
    Pointer,
    TensorDescriptor,
    Unmade,
    Value,
    absolute,
    constant,
    dense,
    over_parts,
)
from gradekit.findings import Cause

PAD_NAN = 2

DESCRIPTOR_ALIGNMENT = 16
"""Bytes of which the address of a descriptor and its strides are multiples, all but the last stride."""

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
        pointer: Pointer = values[source]  # type: ignore[index]
        mask = None if masked is None else values[masked]
        other = values[replaced] if replaced is not None else _undefined(frame, op) if leaves_undefined else None
        if isinstance(other, Pointer):
            other = absolute(other).offset
        access = frame.access(op, pointer, mask, tile)
        if mask is not None:
            note_mask(frame, op, mask, access.shape)
        return in_registers(frame.context.memory.load(access, other, dtype), type)

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
        if not isinstance(value, Unmade) or frame.context.memory.explains:
            value = to_memory(frame, value, type)
        mask = None if masked is None else values[masked]
        access = frame.access(op, pointer, mask, type.shape)
        if mask is not None:
            note_mask(frame, op, mask, access.shape)
        frame.context.memory.store(access, value)

    return step


# --- atomics ----------------------------------------------------------------------------------------------------------


def _stored(frame: Frame, op: Op, *places: int) -> tuple[Tensor, ...]:
    return tuple(to_memory(frame, frame.operand(op, place), op.operand_types[place]) for place in places)


def _change(frame: Frame, op: Op) -> Update:
    """The update that the operation's kind names; floats have a largest and smallest of their own."""
    kind = str(op.attributes["kind"]).lower()
    own = "f" + kind
    change = UPDATES.get(own if own in UPDATES and dtype_of(op.operand_types[1]).is_floating_point else kind)
    if change is None:
        raise Unsupported(f"{op.name} {kind}", frame.context.line(op))
    return change


@evaluates("tt.atomic_rmw")
def _evaluate_atomic_rmw(frame: Frame, op: Op) -> Value:
    return _atomic(frame, op, _change(frame, op), _stored(frame, op, 1), 2)


@evaluates("tt.atomic_cas")
def _evaluate_atomic_cas(frame: Frame, op: Op) -> Value:
    return _atomic(frame, op, compare_and_swap, _stored(frame, op, 1, 2))


@evaluates("tt.atomic_store")
def _evaluate_atomic_store(frame: Frame, op: Op) -> None:
    _atomic(frame, op, overwrite, _stored(frame, op, 1), 2)


@evaluates("tt.atomic_load")
def _evaluate_atomic_load(frame: Frame, op: Op) -> Tensor:
    type = (op.result_types if op.name == "tt.atomic_load" else op.operand_types[1:])[0]
    nothing = torch.zeros([1] * (1 + len(type.shape)), dtype=torch.int64).to(memory_dtype(type))
    return _atomic(frame, op, keep, (nothing,), 1 if op.name == "tt.atomic_load" else None)


@evaluates("tt.atomic_poll")
def _evaluate_atomic_poll(frame: Frame, op: Op) -> Tensor:
    """Programs run together here, so a value that is not there yet will not come while one waits for it."""
    found = _evaluate_atomic_load(frame, op) == _stored(frame, op, 1)[0]
    if len(op.operands) < 3 and not bool(found.all()):
        raise Unsupported("tt.atomic_poll that has to wait", frame.context.line(op))
    return found


def _atomic(frame: Frame, op: Op, change: Update, operands: tuple[Tensor, ...], masked: int | None = None) -> Tensor:
    """The old values; operand number `masked`, if there is such a one, is the mask."""
    frame.context.pause()
    mask = frame.operand(op, masked) if masked is not None and masked < len(op.operands) else None
    tile = (op.result_types or op.operand_types[1:])[0].shape
    return frame.context.memory.atomic(frame.access(op, frame.operand(op, 0), mask, tile), change, operands)


# --- tensor descriptors -----------------------------------------------------------------------------------------------


@evaluates("tt.make_tensor_descriptor")
def _evaluate_make_descriptor(frame: Frame, op: Op) -> TensorDescriptor:
    base, *numbers = (frame.values[name] for name in op.operands)
    tile = op.result_types[0].pointee
    assert tile is not None
    rank = len(tile.shape)
    shape, strides = tuple(numbers[:rank]), tuple(numbers[rank:])
    _look_at_alignment(frame, op, base, (base.offset, *strides[:-1]))
    padding = "nan" if op.attributes.get("padding") == PAD_NAN else "zero"
    return TensorDescriptor(base, shape, strides, tile.shape, padding)


def _look_at_alignment(frame: Frame, op: Op, base: Pointer, numbers: Sequence[Value]) -> None:
    """A card's copies of whole tiles take no other address and no other strides (CUDA's cuTensorMapEncodeTiled)."""
    in_bytes = (dense(number, torch.int64, (frame.count,)) * base.itemsize for number in numbers)
    broken = functools.reduce(torch.logical_or, (size % DESCRIPTOR_ALIGNMENT != 0 for size in in_bytes))
    broken = broken.expand(frame.count)
    if bool(broken.any()):
        what = f"by tl.make_tensor_descriptor (address and strides are multiples of {DESCRIPTOR_ALIGNMENT} bytes)"
        frame.report(Cause.BROKEN_PROMISE, op, broken, what)


def _located(frame: Frame, op: Op, tensor: TensorDescriptor) -> Access:
    """An access to the elements inside the tensor of the tile that an operation names by its last operands."""
    names, rank = op.operands[1 if op.name == "tt.descriptor_load" else 2 :], len(tensor.block)
    shape, tiled = (frame.count, *tensor.block), splat(rank)
    pointer, masks = over_parts(tensor.base, tiled), []
    for axis, (name, size) in enumerate(zip(names, tensor.block, strict=True)):
        along = Affine(0, tuple(int(a == axis + 1) for a in range(rank + 1)), 0, size - 1)
        index = integers.addi(tiled(wide(frame.values[name])), along, 64, shape)
        step = integers.muli(index, tiled(wide(tensor.strides[axis])), 64, shape)
        pointer = move(pointer, step, shape)
        masks.append(integers.cmpi("sge", index, 0, 64, shape))
        masks.append(integers.cmpi("slt", index, tiled(wide(tensor.shape[axis])), 64, shape))
    return frame.access(op, pointer, _all_of(masks), tensor.block)


def _all_of(masks: list[bool | Below | Tensor]) -> Value:
    if any(mask is False for mask in masks):
        return False
    factors = tuple(mask for mask in masks if not isinstance(mask, bool))
    return Conjunction(factors) if factors else True


@evaluates("tt.descriptor_load")
def _evaluate_descriptor_load(frame: Frame, op: Op) -> Value:
    """The tile, padded outside of the tensor; axes of size 1 may be dropped."""
    tensor, type = frame.operand(op, 0), op.result_types[0]
    outside = float("nan") if tensor.padding == "nan" and dtype_of(type).is_floating_point else 0
    other = constant(outside, memory_dtype(type), 1 + len(tensor.block))
    loaded = frame.context.memory.load(_located(frame, op, tensor), other, memory_dtype(type))
    if type.shape != tensor.block:
        loaded = loaded.expand([loaded.shape[0], *tensor.block]).reshape(loaded.shape[0], *type.shape)
    return in_registers(loaded, type)


@evaluates("tt.descriptor_store")
def _evaluate_descriptor_store(frame: Frame, op: Op) -> None:
    tensor, tile = frame.operand(op, 0), frame.full(op, 1)
    frame.context.memory.store(_located(frame, op, tensor), tile.reshape(tile.shape[0], *tensor.block))


@evaluates("tt.descriptor_reduce")
def _evaluate_descriptor_reduce(frame: Frame, op: Op) -> None:
    access = _located(frame, op, frame.operand(op, 0))
    frame.context.memory.atomic(access, _change(frame, op), (frame.tensor(op, 1),))
