"""The arguments of a launch as the values that its kernel's TTIR function takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradekit.engine.frame import dtype_of, itemsize_of
from gradekit.engine.memory import Memory
from gradekit.engine.ttir import Function, Type
from gradekit.engine.values import BlockPointer, Pointer, constant, wrap
from gradekit.program import ITEMSIZE, Descriptor, Scalar, View


def bind(function: Function, arguments: Sequence[View | Scalar | Descriptor], memory: Memory) -> list[Any]:
    """The values of a kernel's TTIR arguments; a host-side descriptor fills those that Triton expands it to."""
    types = list(function.argument_types)
    values: list[Any] = []
    for argument in arguments:
        if isinstance(argument, Descriptor):
            values += _descriptor(argument, memory)
            if len(types) - len(values) < 0 or types[len(values) - 1].element == "tensordesc":
                del values[-2 * len(argument.block) :]
        else:
            values.append(_argument(argument, types[len(values)], memory))
    if len(values) != len(types):
        raise ValueError(f"{function.name} takes {len(types)} arguments, the launch has {len(values)}")
    return values


def _argument(argument: View | Scalar, type: Type, memory: Memory) -> Any:
    if isinstance(argument, View):
        return _pointer(argument, itemsize_of(type.pointee) if type.pointee else 1, memory)
    value = argument.value
    if type.element == "i1":
        return bool(value)
    if type.element.startswith(("f", "bf")):
        return constant(float(value), dtype_of(type), 1)  # type: ignore[arg-type]
    return wrap(int(value), int(type.element[1:]))  # type: ignore[arg-type]


def _pointer(view: View, itemsize: int, memory: Memory) -> Pointer:
    offset = view.offset * ITEMSIZE[view.dtype]
    return Pointer(memory.storages[view.storage], offset // itemsize, itemsize)


def _descriptor(argument: Descriptor, memory: Memory) -> list[Any]:
    view = argument.view
    base = _pointer(view, ITEMSIZE[view.dtype], memory)
    zeros = (0,) * len(view.shape)
    block = BlockPointer(base, view.shape, view.stride, zeros, argument.block, argument.padding)
    return [block, *view.shape, *view.stride]
