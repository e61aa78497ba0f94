"""What an SSA value is for many programs of the grid at once.

The engine evaluates one TTIR operation for `count` programs together, so every value has a program axis before the
axes of its tile: axis 0 is the program, axis 1.. are the tile's. A value is stored in the smallest form that says it:

    int, bool      the same number for every program and every element
    Affine         integers base + sum(step[a] * i_a): what `pid * BLOCK + arange(BLOCK)` is, without its elements
    Tensor         one number for each element, "lazily broadcast": an axis has its full size or size 1
    Below          a mask by what decides it: where an Affine is below zero, as for `offsets < n`
    Conjunction    a mask as a product of smaller masks: (rows < M)[:, None] & (cols < N)[None, :]
    Pointer        a storage, and the element offset in it (int, Affine or int64 Tensor)

Most kernels compute their addresses from the program id and ranges alone; as Affine values those cost a few Python
additions whatever the tile's size, and a load whose address is Affine is a strided view of the storage.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gradekit.compat.torch import storage_id, storage_uses

BITS = {"i1": 1, "i4": 4, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "index": 64}
INTEGER = {1: torch.bool, 8: torch.int8, 16: torch.int16, 32: torch.int32, 64: torch.int64}
UNSIGNED = {1: torch.uint8, 2: torch.uint16, 4: torch.uint32, 8: torch.uint64}  # by the bytes of an element
FLOAT = {
    "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64,
    "f8E4M3FN": torch.float8_e4m3fn, "f8E5M2": torch.float8_e5m2,
    "f8E4M3FNUZ": torch.float8_e4m3fnuz, "f8E5M2FNUZ": torch.float8_e5m2fnuz,
}  # fmt: skip


@dataclass(slots=True)
class Affine:
    """base + sum(steps[a] * i_a) over the program axis and the tile's axes; never wraps in its type.

    A tensor `base` (int64) has size 1 along every axis with a step. `low` and `high` bound all elements.
    """

    base: int | Tensor
    steps: tuple[int, ...]
    low: int
    high: int


@dataclass(slots=True)
class Below:
    """Where `gap` is below zero, for some elements and not for others; `tensor` is the same, once it was asked for."""

    gap: Affine
    tensor: Tensor | None = None


@dataclass(slots=True)
class Conjunction:
    """The elementwise `and` of masks of one rank, each lazily broadcast."""

    factors: tuple[Tensor | Below, ...]


def mask_factors(mask: Value | None) -> tuple[Tensor | Below, ...]:
    """The masks whose conjunction `mask` is."""
    if isinstance(mask, Conjunction):
        return mask.factors
    return (mask,) if isinstance(mask, Tensor | Below) else ()


@dataclass(slots=True)
class Pointer:
    """Element `offset` of `storage`, in units of `itemsize` bytes; `storage` None means absolute virtual addresses.
    `loaded` is what all programs of the launch have loaded there alike, kept by the memory (see fast.py)."""

    storage: Any
    offset: int | Affine | Tensor
    itemsize: int
    loaded: Any = None


@dataclass(slots=True)
class TensorDescriptor:
    """A strided tensor at `base`, accessed in tiles of `block`."""

    base: Pointer
    shape: tuple[Any, ...]
    strides: tuple[Any, ...]
    block: tuple[int, ...]
    padding: str = "zero"


@dataclass(slots=True)
class Unmade:
    """function(*operands), elementwise, of lazily broadcast tensors: computed where it is to be stored."""

    function: Callable[..., Tensor]
    operands: tuple[Tensor, ...]

    @property
    def dtype(self) -> torch.dtype:
        """That of the result."""
        return self.operands[0].dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the result."""
        return tuple(map(max, zip(*(operand.shape for operand in self.operands), strict=True)))

    def made(self) -> Tensor:
        """The result."""
        return self.function(*self.operands)

    def into(self, target: Tensor) -> None:
        """Writes the result to a tensor of its dtype, and of a shape to which it is broadcast."""
        if self.shape == target.shape:
            self.function(*self.operands, out=target)
        else:
            target.copy_(self.made())


Integer = int | Affine | Tensor
Value = int | Affine | Below | Conjunction | Pointer | TensorDescriptor | Unmade | Tensor


# --- integers in range ------------------------------------------------------------------------------------------------


def wrap(value: int, bits: int) -> int:
    """`value` modulo 2**bits, as the signed integer that has those bits (i1 is 0 or 1)."""
    if bits == 1:
        return value & 1
    half = 1 << (bits - 1)
    return value if -half <= value < half else ((value + half) & ((1 << bits) - 1)) - half


def fits(low: int, high: int, bits: int) -> bool:
    """Whether low..high lies in the signed range; 64-bit arithmetic is modular everywhere, so it always does."""
    return bits == 64 or (-(1 << (bits - 1)) <= low and high < (1 << (bits - 1)))


@functools.cache
def arange(size: int) -> Tensor:
    """0..size-1, int64. Shared: never write to it."""
    return torch.arange(size, dtype=torch.int64)


@functools.lru_cache(maxsize=1024)
def axis_range(size: int, axis: int, rank: int) -> Tensor:
    """0..size-1 along `axis` of `rank` axes, the others of size 1."""
    return arange(size).view([size if a == axis else 1 for a in range(rank)])


# --- forms ------------------------------------------------------------------------------------------------------------


def dense(value: Value, dtype: torch.dtype, shape: Sequence[int]) -> Tensor:
    """`value` as a lazily broadcast tensor of `dtype`; `shape` is (count, *tile)."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, Unmade):
        return value.made()
    if isinstance(value, Affine):
        return materialize(value, shape).to(dtype)
    if isinstance(value, Below):
        if value.tensor is None:
            value.tensor = against_zero(torch.lt, value.gap, shape)
        return value.tensor
    if isinstance(value, Conjunction):
        return functools.reduce(torch.logical_and, [dense(factor, torch.bool, shape) for factor in value.factors])
    assert isinstance(value, int)
    return constant(value, dtype, len(shape))


def against_zero(relation: Callable[[Tensor, Tensor], Tensor], value: Affine, shape: Sequence[int]) -> Tensor:
    """relation(value, 0), as one axis against the rest: so that no integers are made for all elements."""
    axis = max(range(len(shape)), key=lambda a: abs(value.steps[a]) and shape[a])
    alone = axis_range(shape[axis], axis, len(shape)) * value.steps[axis]
    rest = Affine(value.base, tuple(0 if a == axis else s for a, s in enumerate(value.steps)), 0, 0)
    return relation(alone, -materialize(rest, shape))


def constant(value: float, dtype: torch.dtype, rank: int) -> Tensor:
    """A number as a tensor with `rank` axes of size 1. Shared: never write to it."""
    return _constant(repr(value) if isinstance(value, float) else int(value), dtype, rank)


@functools.lru_cache(maxsize=4096)
def _constant(value: int | str, dtype: torch.dtype, rank: int) -> Tensor:
    """A float by its text, because 0.0 == -0.0 would share a cache entry."""
    number = torch.tensor(value) if isinstance(value, int) else torch.tensor(float(value), dtype=torch.float64)
    return number.to(dtype).view([1] * rank)


def materialize(value: Affine, shape: Sequence[int]) -> Tensor:
    """All elements of an Affine that vary, as int64, lazily broadcast."""
    total: int | Tensor = wrap(value.base, 64) if isinstance(value.base, int) else value.base
    for axis, step in enumerate(value.steps):
        if step and shape[axis] > 1:
            total = total + axis_range(shape[axis], axis, len(shape)) * wrap(step, 64)
    return total if isinstance(total, Tensor) else constant(total, torch.int64, len(shape))


def affine(value: Integer, rank: int) -> Affine:
    """Any integer value as an Affine; a tensor is scanned for its bounds."""
    if isinstance(value, Affine):
        return value
    if isinstance(value, Tensor):
        low, high = extremes(value)
        return Affine(value.to(torch.int64), (0,) * rank, low, high)
    return Affine(value, (0,) * rank, value, value)


def extremes(value: Tensor) -> tuple[int, int]:
    """Smallest and largest element; a boolean counts as 0 or 1."""
    if value.dtype is torch.bool:
        value = value.to(torch.int8)
    low, high = torch.aminmax(value)
    return int(low), int(high)


def simplify(value: Affine) -> Integer:
    """The smallest form: an int where nothing varies."""
    if isinstance(value.base, int) and not any(value.steps):
        return wrap(value.base, 64)
    return value


def span(value: Affine, shape: Sequence[int]) -> tuple[int, int]:
    """The exact smallest and largest element over `shape` (not the propagated bounds)."""
    low, high = (value.base, value.base) if isinstance(value.base, int) else extremes(value.base)
    for size, step in zip(shape, value.steps, strict=True):
        if step > 0:
            high += step * (size - 1)
        elif step:
            low += step * (size - 1)
    return low, high


def moved(value: Affine, number: int) -> Affine:
    """value + number."""
    return Affine(value.base + number, value.steps, value.low + number, value.high + number)


def add(a: Affine, b: Affine, shape: Sequence[int], scale: int = 1) -> Affine:
    """a + scale * b. An axis that is dense in one base takes the other's step into the base too."""
    base = a.base + (b.base if scale == 1 else b.base * scale)
    steps = [x + scale * y for x, y in zip(a.steps, b.steps, strict=True)]
    if isinstance(base, Tensor):
        for axis, step in enumerate(steps):
            if step and base.shape[axis] > 1:
                base = base + axis_range(shape[axis], axis, len(shape)) * step
                steps[axis] = 0
    low, high = (b.low, b.high) if scale > 0 else (b.high, b.low)
    return Affine(base, tuple(steps), a.low + scale * low, a.high + scale * high)


def scale(value: Affine, factor: int) -> Affine:
    """value * factor."""
    low, high = (value.low, value.high) if factor >= 0 else (value.high, value.low)
    return Affine(value.base * factor, tuple([step * factor for step in value.steps]), low * factor, high * factor)


_HELD: dict[str, Any] = {"one": torch.empty(0)}
_REFERENCES = sys.getrefcount(_HELD["one"]), storage_uses(storage_id(_HELD["one"].untyped_storage()))
"""To a tensor that a dictionary alone holds, and to its memory, while somebody asks."""


def owned(values: dict[str, Any], name: str, dtype: torch.dtype, shape: tuple[int, ...]) -> Tensor | None:
    """This value, where it is a tensor of this dtype and shape that nobody else has: its last user may write there."""
    if sys.getrefcount(values[name]) != _REFERENCES[0]:
        return None
    value = values[name]
    if type(value) is not Tensor or value.dtype is not dtype or value.shape != shape or not value.is_contiguous():
        return None
    return value if storage_uses(storage_id(value.untyped_storage())) == _REFERENCES[1] else None


# --- programs: select, and put back -----------------------------------------------------------------------------------


def over_parts(value: Any, change: Callable[[Any], Any]) -> Any:
    """`value` with each int, Affine and tensor in it changed."""
    if isinstance(value, Below):
        return Below(change(value.gap))
    if isinstance(value, Conjunction):
        return Conjunction(tuple(over_parts(factor, change) for factor in value.factors))
    if isinstance(value, Pointer):
        return Pointer(value.storage, change(value.offset), value.itemsize)
    if isinstance(value, TensorDescriptor):
        base, shape, strides = over_parts(value.base, change), map(change, value.shape), map(change, value.strides)
        return TensorDescriptor(base, tuple(shape), tuple(strides), value.block, value.padding)
    return change(value)


def narrow(value: Any, index: Tensor) -> Any:
    """`value` for the programs at `index` alone (positions along the program axis)."""

    def change(part: Any) -> Any:
        if isinstance(part, Tensor):
            return part if part.shape[0] == 1 else part.index_select(0, index)
        return _narrow_affine(part, index) if isinstance(part, Affine) else part

    return over_parts(value, change)


def _narrow_affine(value: Affine, index: Tensor) -> Affine:
    rank = len(value.steps)
    base = narrow(value.base, index)
    if value.steps[0]:
        base = base + (index * value.steps[0]).view([-1] + [1] * (rank - 1))
    return Affine(base, (0, *value.steps[1:]), value.low, value.high)


def stitch(pieces: list[tuple[Tensor, Any]], count: int, dtype: torch.dtype | None, tile: Sequence[int]) -> Any:
    """One value for `count` programs from pieces: (positions along the program axis, the value there)."""
    first = pieces[0][1]
    same = [one is first or isinstance(one, int) and isinstance(first, int) and one == first for _, one in pieces]
    if len(pieces) == 1 or all(same):
        return first if len(pieces) > 1 or pieces[0][0].numel() == count else _scatter(pieces, count, dtype, tile)
    if isinstance(first, Pointer):
        return _stitch_pointers(pieces, count, tile)
    if isinstance(first, TensorDescriptor):
        return _stitch_descriptors(pieces, count)
    return _scatter(pieces, count, dtype, tile)


def _scatter(pieces: list[tuple[Tensor, Any]], count: int, dtype: torch.dtype | None, tile: Sequence[int]) -> Tensor:
    parts = [(index, dense(value, dtype or torch.int64, (index.numel(), *tile))) for index, value in pieces]
    axes = [max(part.shape[axis + 1] for _, part in parts) for axis in range(len(tile))]
    whole = parts[0][1].new_empty([count, *axes])
    for index, part in parts:
        whole[index] = part.expand([index.numel(), *axes])
    return whole


def _stitch_pointers(pieces: list[tuple[Tensor, Any]], count: int, tile: Sequence[int]) -> Pointer:
    first = pieces[0][1]
    if any(value.storage is not first.storage or value.itemsize != first.itemsize for _, value in pieces):
        pieces = [(index, absolute(value)) for index, value in pieces]
        first = pieces[0][1]
    offset = stitch([(index, value.offset) for index, value in pieces], count, torch.int64, tile)
    return Pointer(first.storage, offset, first.itemsize)


def _stitch_descriptors(pieces: list[tuple[Tensor, Any]], count: int) -> TensorDescriptor:
    first = pieces[0][1]

    def part(name: str) -> tuple[Any, ...]:
        columns = zip(*(getattr(value, name) for _, value in pieces), strict=True)
        return tuple(
            stitch([(index, value) for (index, _), value in zip(pieces, column, strict=True)], count, torch.int64, ())
            for column in columns
        )

    base = stitch([(index, value.base) for index, value in pieces], count, None, ())
    return TensorDescriptor(base, part("shape"), part("strides"), first.block, first.padding)


def absolute(pointer: Pointer) -> Pointer:
    """The same addresses as bytes of the virtual address space, for pointers that come from several storages."""
    if pointer.storage is None:
        return pointer
    start, offset = pointer.storage.address, pointer.offset
    if isinstance(offset, Affine):
        rank = len(offset.steps)
        bytes: Any = add(scale(offset, pointer.itemsize), Affine(start, (0,) * rank, start, start), (1,) * rank)
    else:
        bytes = offset * pointer.itemsize + start
    return Pointer(None, bytes, pointer.itemsize)
