"""What torch's functions do to shape, strides and offset: done again with sizes that remember where they come from.

A rule takes the arguments (tensors as Geometries), the keywords, and whether the result lies in the first argument's
memory; it gives the result's geometry, or None where it does not know. Nothing here has to be right for every call:
what torch gave is compared with it, and strides are believed apart from shapes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Geometry:
    """`shape`, `stride` and `offset`, in elements."""

    shape: tuple[Any, ...]
    stride: tuple[Any, ...]
    offset: Any = 0

    @property
    def is_dense(self) -> bool:
        """Whether it is contiguous, whatever its sizes are."""
        expected = contiguous(self.shape)
        return all(_same(a, b) for a, b in zip(self.stride, expected, strict=True))


def _same(a: Any, b: Any) -> bool:
    """Whether two sizes are the same whatever the inputs are."""
    terms = getattr(a, "term", None), getattr(b, "term", None)
    return terms[0] == terms[1] and (terms[0] is not None or int(a) == int(b))


def contiguous(shape: Sequence[Any]) -> tuple[Any, ...]:
    """The strides of a contiguous tensor, where no size is zero."""
    strides: list[Any] = []
    step: Any = 1
    for size in reversed(shape):
        strides.append(step)
        step = size if type(step) is int and step == 1 else step * size
    return tuple(reversed(strides))


def new(shape: Sequence[Any]) -> Geometry:
    """A contiguous tensor in memory of its own."""
    return Geometry(tuple(shape), contiguous(shape))


Rule = Callable[[Sequence[Any], dict[str, Any], bool], Geometry | None]
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Enters a rule into the table, by the names of torch's functions."""

    def enter(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return enter


def _shape(args: Sequence[Any]) -> tuple[Any, ...]:
    """`f(2, 3)` or `f((2, 3))`"""
    return tuple(args[0]) if args and isinstance(args[0], (tuple, list)) else tuple(args)


@rule("empty", "zeros", "ones", "rand", "randn")
def _created(args: Sequence[Any], kwargs: dict[str, Any], same: bool) -> Geometry | None:
    return new(_shape(args) if args else tuple(kwargs["size"]))


@rule("full")
def _full(args: Sequence[Any], kwargs: dict[str, Any], same: bool) -> Geometry | None:
    return new(tuple(args[0] if args else kwargs["size"]))


@rule("new_empty", "new_zeros", "new_ones")
def _new(args: Sequence[Any], kwargs: dict[str, Any], same: bool) -> Geometry | None:
    return new(_shape(args[1:]) if len(args) > 1 else tuple(kwargs["size"]))


@rule("new_full")
def _new_full(args: Sequence[Any], kwargs: dict[str, Any], same: bool) -> Geometry | None:
    return new(tuple(args[1]))


@rule("empty_strided")
def _strided(args: Sequence[Any], kwargs: dict[str, Any], same: bool) -> Geometry | None:
    return Geometry(tuple(args[0]), tuple(args[1]))


@rule("empty_like", "zeros_like", "ones_like", "full_like", "clone", "to", "float", "half", "bfloat16", "double",
      "contiguous",
      "detach", "requires_grad_", "cuda", "type", "alias", "view_as_real", "fill_", "zero_", "copy_")  # fmt: skip
def _like(args: Sequence[Any], kwargs: dict[str, Any], same: bool) -> Geometry | None:
    tensor = args[0]
    if same:
        return tensor
    return new(tensor.shape)


@rule("view", "reshape")
def _view(args: Sequence[Any], kwargs: dict[str, Any], same: bool) -> Geometry | None:
    tensor, shape = args[0], _shape(args[1:]) or tuple(kwargs.get("shape", ()))
    return _viewed(tensor, _whole(tensor, shape), same)


def _whole(tensor: Geometry, shape: tuple[Any, ...]) -> tuple[Any, ...]:
    """`shape` with its -1 worked out."""
    if not any(type(size) is int and size == -1 for size in shape):
        return shape
    others = math.prod(size for size in shape if int(size) != -1)
    left = list(tensor.shape)
    for size in shape:
        matches = [place for place, n in enumerate(left) if _same(n, size)]
        if matches and int(size) != -1:
            del left[matches[0]]
    rest = (
        math.prod(left)
        if math.prod(map(int, left)) * int(others) == math.prod(map(int, tensor.shape))
        else (math.prod(tensor.shape) // others)
    )
    return tuple(rest if int(size) == -1 else size for size in shape)


def _viewed(tensor: Geometry, shape: tuple[Any, ...], same: bool) -> Geometry:
    if not same:
        return new(shape)
    if tensor.is_dense:
        return Geometry(tuple(shape), contiguous(shape), tensor.offset)
    kept = len(shape) == len(tensor.shape) and all(map(_same, shape, tensor.shape))
    return tensor if kept else Geometry(shape, _merged(tensor, shape), tensor.offset)


def _merged(tensor: Geometry, shape: tuple[Any, ...]) -> tuple[Any, ...]:
    """The strides where leading dimensions that lie one after another become one, before a last one that stays; else
    nothing that torch would agree with."""
    if len(shape) == 2 and len(tensor.shape) > 2 and _same(shape[-1], tensor.shape[-1]):
        return tensor.stride[-2], tensor.stride[-1]
    return (-1,) * len(shape)


@rule("flatten", "ravel")
def _flatten(args: Sequence[Any], kwargs: dict[str, Any], same: bool) -> Geometry | None:
    tensor, *dims = args
    rank = len(tensor.shape)
    first = int(kwargs.get("start_dim", dims[0] if dims else 0)) % max(rank, 1)
    last = int(kwargs.get("end_dim", dims[1] if len(dims) > 1 else -1)) % max(rank, 1)
    middle = math.prod(tensor.shape[first : last + 1])
    return _viewed(tensor, (*tensor.shape[:first], middle, *tensor.shape[last + 1 :]), same)


@rule("t", "transpose", "swapaxes", "swapdims", "__get__", "adjoint")
def _transposed(args: Sequence[Any], kwargs: dict[str, Any], same: bool) -> Geometry | None:
    """`x.T` and `x.mT` are read as a property, whose function is called __get__."""
    tensor = args[0]
    rank = len(tensor.shape)
    dims = [int(d) % rank for d in args[1:3]] if len(args) > 2 else [rank - 2, rank - 1]
    order = list(range(rank))
    order[dims[0]], order[dims[1]] = order[dims[1]], order[dims[0]]
    return _permuted(tensor, order)


@rule("permute")
def _permute(args: Sequence[Any], kwargs: dict[str, Any], same: bool) -> Geometry | None:
    tensor = args[0]
    return _permuted(tensor, [int(d) % len(tensor.shape) for d in _shape(args[1:]) or kwargs["dims"]])


def _permuted(tensor: Geometry, order: Sequence[int]) -> Geometry:
    return Geometry(tuple(tensor.shape[d] for d in order), tuple(tensor.stride[d] for d in order), tensor.offset)


@rule("unsqueeze")
def _unsqueeze(args: Sequence[Any], kwargs: dict[str, Any], same: bool) -> Geometry | None:
    tensor, at = args[0], int(args[1] if len(args) > 1 else kwargs["dim"])
    at %= len(tensor.shape) + 1
    step = tensor.shape[at] * tensor.stride[at] if at < len(tensor.shape) else 1
    return _inserted(tensor, at, 1, step)


def _inserted(tensor: Geometry, at: int, size: Any, step: Any) -> Geometry:
    shape, stride = tensor.shape, tensor.stride
    return Geometry((*shape[:at], size, *shape[at:]), (*stride[:at], step, *stride[at:]), tensor.offset)


@rule("squeeze")
def _squeeze(args: Sequence[Any], kwargs: dict[str, Any], same: bool) -> Geometry | None:
    tensor, at = args[0], int(args[1] if len(args) > 1 else kwargs["dim"])
    at %= len(tensor.shape)
    return Geometry(
        tensor.shape[:at] + tensor.shape[at + 1 :], tensor.stride[:at] + tensor.stride[at + 1 :], tensor.offset
    )


@rule("expand", "broadcast_to")
def _expand(args: Sequence[Any], kwargs: dict[str, Any], same: bool) -> Geometry | None:
    tensor, wanted = args[0], _shape(args[1:])
    missing = len(wanted) - len(tensor.shape)
    shape: list[Any] = []
    stride: list[Any] = []
    for axis, size in enumerate(wanted):
        old = tensor.shape[axis - missing] if axis >= missing else None
        kept = old is not None and (int(size) == -1 or _same(size, old))
        shape.append(old if kept else size)
        stride.append(tensor.stride[axis - missing] if kept else 0)
    return Geometry(tuple(shape), tuple(stride), tensor.offset)


@rule("select")
def _select(args: Sequence[Any], kwargs: dict[str, Any], same: bool) -> Geometry | None:
    tensor, axis, place = args
    return _indexed(tensor, [slice(None)] * (int(axis) % len(tensor.shape)) + [place])


@rule("narrow")
def _narrow(args: Sequence[Any], kwargs: dict[str, Any], same: bool) -> Geometry | None:
    tensor, axis, start, length = args
    return _indexed(tensor, [slice(None)] * (int(axis) % len(tensor.shape)) + [slice(start, start + length)])


@rule("__getitem__")
def _getitem(args: Sequence[Any], kwargs: dict[str, Any], same: bool) -> Geometry | None:
    tensor, index = args
    return _indexed(tensor, list(index) if isinstance(index, tuple) else [index]) if same else None


def parts(tensor: Geometry, count: int, axis: int = 0) -> list[Geometry | None]:
    """What `unbind` gives: the tensor at each place along an axis."""
    before = [slice(None)] * (int(axis) % len(tensor.shape))
    return [_indexed(tensor, [*before, place]) for place in range(count)]


def _indexed(tensor: Geometry, index: list[Any]) -> Geometry | None:
    """Slices, integers, None and ...; None where something else is among them."""
    if Ellipsis in [part for part in index if part is Ellipsis]:
        at = next(number for number, part in enumerate(index) if part is Ellipsis)
        taken = sum(part is not None for part in index) - 1
        index = index[:at] + [slice(None)] * (len(tensor.shape) - taken) + index[at + 1 :]
    shape: list[Any] = []
    stride: list[Any] = []
    offset, axis = tensor.offset, 0
    for part in index:
        if part is None:
            shape.append(1)
            stride.append(tensor.shape[axis] * tensor.stride[axis] if axis < len(tensor.shape) else 1)
            continue
        size, step = tensor.shape[axis], tensor.stride[axis]
        axis += 1
        if isinstance(part, slice):
            start, length, by = _sliced(part, size)
            shape.append(length)
            stride.append(step * by if by != 1 else step)
        elif isinstance(part, int) and not isinstance(part, bool):
            start = part if part >= 0 else size + part
        else:
            return None
        offset = offset + start * step if not (type(start) is int and start == 0) else offset
    return Geometry((*shape, *tensor.shape[axis:]), (*stride, *tensor.stride[axis:]), offset)


def _sliced(part: slice, size: Any) -> tuple[Any, Any, int]:
    """(start, length, step)"""
    start = 0 if part.start is None else part.start if part.start >= 0 else size + part.start
    stop = size if part.stop is None else part.stop if part.stop >= 0 else size + part.stop
    stop = min(stop, size)
    by = 1 if part.step is None else int(part.step)
    length = stop - start if not (type(start) is int and start == 0) else stop
    return start, length if by == 1 else (length + by - 1) // by, by
