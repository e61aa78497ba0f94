"""A kernel's promises to the compiler, compared with the values: tl.multiple_of, tl.max_contiguous, tl.max_constancy.

`tl.multiple_of(x, n)` is about the first of every group of elements that are promised to be contiguous, as Triton reads
it; without such a promise, about the first of every run that is contiguous. Lanes past the end of a tensor are often
sent back to its beginning (`% M`, or `tl.where(offsets < M, offsets, 0)`) before they are promised
to be contiguous. The compiler then goes on past the end for them, and their results are dropped:
such an end of a group breaks no promise.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from gradekit.engine.frame import Frame, dtype_of
from gradekit.engine.kernel_facts import CONTIGUITY, promises_contiguity
from gradekit.engine.values import Pointer, absolute, dense
from gradekit.findings import Cause
from gradekit.program import ALIGNMENT, FUNCTION, ITEMSIZE, Argument, Scalar, View

if TYPE_CHECKING:
    from gradekit.engine.registry import Evaluator
    from gradekit.engine.ttir import Op

_DIVISIBLE, _CONSTANT = "tt.divisibility", "tt.constancy"
_LOW, _HIGH = torch.iinfo(torch.int64).min, torch.iinfo(torch.int64).max
_NAMES = {_DIVISIBLE: "tl.multiple_of", CONTIGUITY: "tl.max_contiguous", _CONSTANT: "tl.max_constancy"}


def promises(op: Op) -> bool:
    """Whether the operation carries promises about its result."""
    return len(op.results) == 1 and any(name in op.attributes for name in _NAMES)


def kept(op: Op, evaluate: Evaluator) -> Evaluator:
    """`evaluate`, with its result compared with what the operation promises; what does not hold is an incident."""
    promised = _of(op)
    contiguous, goes_on = promised.get(CONTIGUITY), promises_contiguity(op) and op.result_types[0].shape != ()

    def checked(frame: Frame) -> Any:
        value = evaluate(frame)
        whole, unit = (absolute(value).offset, value.itemsize) if isinstance(value, Pointer) else (value, 1)
        elements = _elements(frame, op, whole)
        if contiguous and goes_on:
            as_promised = _as_promised(contiguous, elements)
            if frame.context.conditions.promised:
                return as_promised.to(dtype_of(op.result_types[0]))
            frame.context.begins_anew |= not torch.equal(as_promised, elements)
        elif frame.context.conditions.promised:
            return value
        for name, sizes in promised.items():
            broken = ~_holds(name, sizes, elements, contiguous, unit)
            if bool(broken.any()):
                said = f"by {_NAMES[name]}({', '.join(map(str, sizes))})"
                frame.report(Cause.BROKEN_PROMISE, op, broken.expand(frame.count), said)
        return value

    return checked


def misaligned_arguments(ttir: str, arguments: Sequence[Argument]) -> list[str]:
    """The names of a launch's arguments that are no multiples of 16, although the kernel was specialized to that."""
    aligned = kernel_arguments(ttir)
    if len(aligned) != len(arguments):  # a descriptor stands for several of them
        return []
    return [
        name for (name, promised), value in zip(aligned, arguments, strict=True) if promised and not _aligned(value)
    ]


def _aligned(value: Argument) -> bool:
    if isinstance(value, View) and value.numel == 0:
        return True  # torch gives an empty tensor the address 0, and Triton specializes to that
    if isinstance(value, View):
        return value.offset * ITEMSIZE[value.dtype] % 16 == 0
    return not isinstance(value, Scalar) or not isinstance(value.value, int) or value.value % 16 == 0


@functools.lru_cache(maxsize=512)
def kernel_arguments(ttir: str) -> list[tuple[str, bool]]:
    """The arguments of the kernel by name, with whether its text says that they are multiples of 16."""
    head = FUNCTION.search(ttir)
    pieces = re.split(r"(?=%)", head[0])[1:] if head else []
    return [(piece[1 : piece.index(":")], ALIGNMENT in piece) for piece in pieces if ":" in piece]


def _of(op: Op) -> dict[str, list[int]]:
    """The promises, each with a number for every axis of the tile."""
    rank = max(len(op.result_types[0].shape), 1)
    found = {name: op.attributes[name] for name in _NAMES if name in op.attributes}
    return {name: list(sizes) if isinstance(sizes, list) else [int(sizes)] * rank for name, sizes in found.items()}


def _elements(frame: Frame, op: Op, value: Any) -> Tensor:
    """The result as int64 [programs, *tile]; a scalar is a tile of one."""
    type = op.result_types[0]
    shape = frame.shape(type)
    wide = dense(value, torch.int64 if type.element == "ptr" else dtype_of(type), shape).to(torch.int64)
    wide = wide.expand([wide.shape[0], *type.shape])
    return wide if type.shape else wide.unsqueeze(-1)


def _as_promised(contiguous: list[int], wide: Tensor) -> Tensor:
    """Whole numbers as the compiler may take them: the first of each group, and what follows it."""
    for axis, size in enumerate(contiguous, 1):
        count = wide.shape[axis]
        if size > 1 and count % min(size, count) == 0:
            group = min(size, count)
            groups = wide.movedim(axis, -1).unflatten(-1, (count // group, group))
            wide = (groups[..., :1] + torch.arange(group)).flatten(-2).movedim(-1, axis)
    return wide


def _holds(name: str, sizes: list[int], value: Tensor, contiguous: list[int] | None, unit: int) -> Tensor:
    """For each program, whether its elements keep the promise along every axis; those that follow one another lie one
    `unit` apart, the bytes of an element where they are addresses."""
    result = torch.ones(value.shape[0], dtype=torch.bool)
    for axis, size in enumerate(sizes, 1):
        along = value.movedim(axis, -1)
        if name == _DIVISIBLE:
            group = max(contiguous[axis - 1], 1) if contiguous else 1
            good = along[..., ::group] % max(size, 1) == 0
            good = good if group > 1 else good | ~_starts(along, unit)
        else:
            good = _grouped(along, size, unit if name == CONTIGUITY else 0)
        result &= good.flatten(1).all(1)
    return result


def _starts(along: Tensor, unit: int) -> Tensor:
    """Which elements begin a contiguous run."""
    starts = torch.ones_like(along, dtype=torch.bool)
    starts[..., 1:] = along[..., 1:] != along[..., :-1] + unit
    return starts


def _grouped(along: Tensor, size: int, unit: int) -> Tensor:
    """For each group of `size` elements along the last axis, whether they are one `unit` apart, or constant where it is
    0; contiguous is also what goes back to one element again and again, not after the first of the group."""
    size = min(size, along.shape[-1])
    if size <= 1 or along.shape[-1] % size:
        return torch.ones([along.shape[0], 1], dtype=torch.bool)
    groups = along.reshape(*along.shape[:-1], -1, size)
    broken = groups.diff(dim=-1) != unit
    if not unit or not bool(broken.any()):
        return ~broken.any(-1)
    lands = groups[..., 1:].where(broken, groups[..., :1])
    same = lands.masked_fill(~broken, _HIGH).amin(-1) == lands.masked_fill(~broken, _LOW).amax(-1)
    return ~broken.any(-1) | (same & (lands <= groups[..., :1]).all(-1))
