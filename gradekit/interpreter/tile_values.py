"""Values of a kernel for all programs at once: a tensor has the programs as its first dimension (or 1, where all have
the same), then the tile's own; a Python number is the same for all. Integers are int64, whatever they are in Triton,
but for uint32, which generators of random numbers let overflow."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from gradekit.arithmetic import OF_TWO
from gradekit.engine.memory import Memory, Storage
from gradekit.interpreter import Limit
from gradekit.program import MOST_IN_A_TILE


class NotWalked(Exception):
    """Source that is not understood, or refused: nothing is said of such a kernel, or of such a change."""


class OutsideEverywhere(NotWalked):
    """Every copy of a launch goes out of bounds."""


@dataclass(frozen=True)
class TilePointer:
    """Elements of a storage: `offset` in elements of `dtype`, a number or a tile of int64."""

    storage: int
    dtype: torch.dtype
    offset: Any


@dataclass(frozen=True)
class TileBlocks:
    """A tensor descriptor, or a block pointer, which has `offsets`: tiles of a shape, `block`, of a strided tensor."""

    base: TilePointer
    shape: tuple[Any, ...]
    strides: tuple[Any, ...]
    block: tuple[int, ...]
    offsets: tuple[Any, ...] | None = None

    def tile(self, offsets: Any, checked: Collection[int]) -> tuple[TilePointer, Any]:
        """The pointers of a tile that begins at `offsets`, and the mask that bounds the axes that are `checked`: those
        of a descriptor are, all of them."""
        place, mask, own = self.base, None, self.offsets
        for axis, (size, stride, lanes) in enumerate(zip(self.shape, self.strides, self.block, strict=True)):
            first = offsets[axis] if own is None else own[axis]
            form = (1, *(lanes if one == axis else 1 for one in range(len(self.block))))
            index = computed("+", torch.arange(lanes).reshape(form), first)
            place = computed("+", place, computed("*", index, stride))
            if own is None or axis in checked:
                inside = computed("&", computed(">=", index, 0), computed("<", index, size))
                mask = inside if mask is None else computed("&", mask, inside)
        return place, mask

    def advanced(self, by: Sequence[Any]) -> TileBlocks:
        """The block pointer of a tile further on, as tl.advance has it."""
        return replace(self, offsets=tuple(computed("+", *pair) for pair in zip(self.offsets or (), by, strict=True)))


def mapped(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """A value with its tensors changed: of a tuple those of each part, of a pointer its offset."""
    if isinstance(value, tuple):
        return tuple(mapped(one, change) for one in value)
    if isinstance(value, TileBlocks):
        parts = ("base", "shape", "strides", "offsets")
        return replace(value, **{name: mapped(getattr(value, name), change) for name in parts})
    if isinstance(value, TilePointer):
        return replace(value, offset=mapped(value.offset, change))
    return change(value) if isinstance(value, Tensor) else value


DTYPES = {
    "float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32, "float64": torch.float64,
    "int1": torch.bool, "int8": torch.int64, "int16": torch.int64, "int32": torch.int64, "int64": torch.int64,
    "uint8": torch.int64, "uint32": torch.uint32, "uint64": torch.int64,
    "fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32, "fp64": torch.float64,
    "i32": torch.int64, "i64": torch.int64,
}  # fmt: skip
"""What values of Triton's dtypes are here, by the names that source and constants have."""


def aligned(one: Any, other: Any) -> tuple[Any, Any]:
    """Two values with equally many dimensions: those that a tile lacks come right behind that of the programs."""
    if isinstance(one, Tensor) and isinstance(other, Tensor) and one.shape != other.shape:
        most = max(one.dim(), other.dim())
        one, other = spread(one, most), spread(other, most)
        if math.prod(map(max, one.shape, other.shape)) > MOST_IN_A_TILE:
            raise NotWalked("a tile that is too large")
    return one, other


def spread(tile: Tensor, dims: int) -> Tensor:
    """A tile with so many dimensions, that of the programs among them."""
    missing = dims - tile.dim()
    return tile.reshape(tile.shape[:1] + (1,) * missing + tile.shape[1:]) if missing > 0 else tile


def is_integer(value: Any) -> bool:
    """Whether a number or tile is of integers (bools among them)."""
    return not value.is_floating_point() if isinstance(value, Tensor) else isinstance(value, int)


def computed(op: str, left: Any, right: Any) -> Any:
    """`left op right`, as Triton has it."""
    if isinstance(left, TilePointer) or isinstance(right, TilePointer):
        return _moved(op, left, right)
    if not isinstance(left, Tensor) and not isinstance(right, Tensor):
        return _of_numbers(op, left, right)
    left, right = aligned(left, right)
    if torch.uint32 not in (getattr(left, "dtype", None), getattr(right, "dtype", None)):
        return _ON_TILES[op](left, right)
    wide = (one.long() if isinstance(one, Tensor) and is_integer(one) else one for one in (left, right))
    found = _ON_TILES[op](*wide)
    return found if found.is_floating_point() or found.dtype is torch.bool else (found & 0xFFFFFFFF).to(torch.uint32)


def _moved(op: str, left: Any, right: Any) -> TilePointer:
    if isinstance(right, TilePointer) and op == "+":
        left, right = right, left
    if not isinstance(left, TilePointer) or isinstance(right, TilePointer) or op not in "+-" or not is_integer(right):
        raise NotWalked("arithmetic of pointers")
    return TilePointer(left.storage, left.dtype, computed(op, left.offset, right))


def _of_numbers(op: str, left: Any, right: Any) -> Any:
    if not isinstance(left, (int, float)) or not isinstance(right, (int, float)):
        if op in ("==", "!=") or left is None or right is None:
            return OF_TWO[op](left, right)
        raise NotWalked("an operator between other things than numbers")
    if op in ("**", "<<") and abs(right) > Limit.BITS:
        raise NotWalked("a large power")
    if op in ("//", "%") and left * right < 0:
        raise NotWalked("a quotient that is rounded down of constants alone, and of others towards 0")
    found = OF_TWO[op](left, right)
    if isinstance(found, int) and abs(found) >= 1 << 63 or isinstance(found, complex):
        raise NotWalked("a number that no kernel has")
    return found


def _quotient(left: Any, right: Any) -> Tensor:
    return torch.div(left, _divisor(right), rounding_mode="trunc")


def _rest(left: Any, right: Any) -> Tensor:
    left = left if isinstance(left, Tensor) else torch.full_like(right, left)
    return torch.fmod(left, _divisor(right))


def _divisor(value: Any) -> Any:
    """A divisor, with 1 in place of an integer 0: of some copies alone, which are no reason to give up the others."""
    is_tile = isinstance(value, Tensor) and not value.is_floating_point()
    return torch.where(value == 0, 1, value) if is_tile else value


_ON_TILES: dict[str, Callable[[Any, Any], Any]] = {
    **{sign: function for sign, function in OF_TWO.items() if sign not in ("@", "in", "not in")},
    "/": torch.true_divide, "//": _quotient, "%": _rest,
}  # fmt: skip


def negated(op: str, value: Any) -> Any:
    """A unary operator: "-", "+", "~" or "not"."""
    if op == "not":
        return ~value.bool() if isinstance(value, Tensor) else not value
    if op == "~":
        return ~value
    return -value if op == "-" else value


def converted(input: Any, dtype: torch.dtype, *_: Any, **__: Any) -> Any:
    """A value in another dtype, however that is rounded; a number stays one."""
    if isinstance(input, Tensor):
        return input.to(dtype)
    return float(input) if dtype.is_floating_point else bool(input) if dtype is torch.bool else int(input)


def tile_of(value: Any) -> Tensor:
    """A value as a tile of no dimensions of its own, where it is a number."""
    if isinstance(value, Tensor):
        return value
    if not isinstance(value, (int, float)):
        raise NotWalked("no number")
    return torch.tensor([value], dtype=torch.float32 if isinstance(value, float) else None)


def chosen(condition: Any, yes: Any, no: Any) -> Any:
    """tl.where."""
    condition = tile_of(condition).bool()
    if isinstance(yes, TilePointer) or isinstance(no, TilePointer):
        raise NotWalked("a choice of pointers")
    if not isinstance(yes, Tensor) and not isinstance(no, Tensor):
        yes = tile_of(float(yes) if isinstance(no, float) else yes)
    yes, no = aligned(yes, no)
    condition, _ = aligned(condition, yes if isinstance(yes, Tensor) else no)
    return torch.where(condition, aligned(condition, yes)[1], aligned(condition, no)[1])


# --- what may stand in the place of what: values of one kind, and what is added to or multiplied with them ------------


@dataclass(frozen=True)
class ValueKind:
    """`of` is "pointer", "condition", "integer" or "float"; `shape` is the tile's own."""

    of: str
    shape: tuple[int, ...]


def kind_of(value: Any) -> ValueKind | None:
    """The kind of a value; None of what is no number, tile or pointer."""
    if isinstance(value, TileBlocks):
        return ValueKind(f"pointer {value.base.storage}", value.block)
    if isinstance(value, TilePointer):
        return ValueKind(f"pointer {value.storage}", _shape(value.offset))
    if not isinstance(value, (Tensor, int, float)):
        return None
    is_condition = value.dtype.itemsize == 1 if isinstance(value, Tensor) else isinstance(value, bool)
    return ValueKind("condition" if is_condition else "integer" if is_integer(value) else "float", _shape(value))


def _shape(value: Any) -> tuple[int, ...]:
    return tuple(value.shape[1:]) if isinstance(value, Tensor) else ()


def fitted(name: str, shape: tuple[int, ...], wanted: tuple[int, ...]) -> str | None:
    """How a name with a tile of a shape is written beside a tile of the `wanted` shape; None where it does not fit."""
    if shape in (wanted, ()):
        return name
    if len(shape) == 1 and len(wanted) == 2:
        if shape[0] == wanted[0]:
            return f"{name}[:, None]"
        if shape[0] == wanted[1]:
            return f"{name}[None, :]"
    if len(shape) == len(wanted) and all(mine in (1, other) for mine, other in zip(shape, wanted, strict=True)):
        return name
    return None


# --- loads, stores and atomics of all programs at once: an access out of bounds is refused ----------------------------


class TileMemory:
    """The storages of a launch, written in place; an input never is.

    Where a launch is evaluated in several `copies`, each has its own programs, and its own part of every storage but
    the inputs; `lost` says which copies have gone out of bounds. A `lenient` memory takes the first element in place of
    one that is out of bounds, and sets `strays`. Where each element is to be stored by one program `alone`, a copy
    in which several do is lost, too.
    """

    def __init__(
        self, memory: Memory, copies: int = 1, programs: int = 1, lenient: bool = False, alone: bool = False
    ) -> None:
        self._memory, self._copies, self._programs, self._alone = memory, copies, programs, alone
        self._lenient, self.strays, self.is_noted = lenient, False, True  # the last: who stores what
        self.stored: set[int] = set()  # the storages that were stored to
        self._only: tuple[int, int] | None = None  # that one, by its number, of so many copies
        self.lost = torch.zeros(copies, dtype=torch.bool)
        self._meant: Tensor | None = None  # the copies that need what is evaluated now, if not all
        self._writers: dict[int, Tensor] = {}  # of each element of a storage, -1 where nobody has stored to it
        self._idle = torch.ones(copies * programs, dtype=torch.bool)
        self._again = 0

    def lose(self, wrong: Tensor) -> None:
        """Gives up the copies in whose rows something is wrong. Raises OutsideEverywhere where these are all."""
        found = wrong.reshape(self._copies, -1).any(1)
        self.lost |= found if self._meant is None else found & self._meant
        if bool(self.lost.all()):
            raise OutsideEverywhere

    @property
    def in_vain(self) -> tuple[int, int]:
        """How many of a thousand programs of a launch store nothing that no other does: of a grid that is too large
        along one axis, the share stays when it grows along another; and how many elements several store."""
        idle = self._idle.clone()
        for writers in self._writers.values():
            idle[writers[writers >= 0]] = False
        return 1000 * int(idle.sum()) // len(idle), self._again

    def _note(self, storage: int, flat: Tensor, offsets: Tensor, mask: Tensor | None, is_added: bool = False) -> None:
        """Notes which programs store, and where; of several copies, where programs are to store alone."""
        if self._copies > 1 and not self._alone or self._only is not None or not self.is_noted:
            return
        program = torch.arange(len(self._idle)).reshape(-1, *(1 for _ in offsets.shape[1:])).expand(offsets.shape)
        offsets, program = (offsets, program) if mask is None else (offsets[mask], program[mask])
        if is_added:
            self._idle[program] = False
            return
        if storage not in self._writers:
            self._writers[storage] = torch.full((flat.numel(),), -1)
        writers = self._writers[storage]
        before = writers[offsets]
        writers[offsets] = program
        several = (before >= 0) & (before != program) | (writers[offsets] != program)
        self._again += int(several.sum())
        if self._alone and self._again:
            self.lose(torch.bincount(program[several] // self._programs, minlength=self._copies) > 0)

    def part(self, number: int) -> TileMemory:
        """The storages of one of the copies."""
        one = TileMemory(self._memory, 1, self._programs)
        one._only = (number, self._copies) if self._copies > 1 else None
        return one

    def _storage(self, id: int) -> Storage:
        storage = self._memory.storages[id]
        if self._only is None or storage.is_input:
            return storage
        number, copies = self._only
        size, data = storage.data.numel() // copies, storage.typed(torch.uint8)
        return Storage(id, data[number * size : (number + 1) * size], storage.address)

    @contextlib.contextmanager
    def meant_for(self, copies: Tensor) -> Iterator[None]:
        """While open, what is touched counts for these copies alone: others do not need what is evaluated."""
        before = self._meant
        self._meant = copies if before is None else copies & before
        try:
            yield
        finally:
            self._meant = before

    def load(self, pointer: TilePointer, mask: Any, other: Any) -> Tensor:
        """The elements at a pointer; `other`, or 0, where the `mask` is False."""
        flat, offsets, mask = self._reached(pointer, mask)
        found = flat.take(offsets) if flat.numel() else torch.zeros_like(offsets, dtype=flat.dtype)
        if mask is not None:
            filled = 0 if other is None else other
            if isinstance(filled, Tensor):
                filled = aligned(found, filled.to(found.dtype))[1]
            found = torch.where(mask, found, filled)
        return found if found.is_floating_point() or found.dtype is torch.bool else found.long()

    def store(self, pointer: TilePointer, value: Any, mask: Any, count: int) -> None:
        """Writes a value for each of `count` programs."""
        flat, offsets, mask = self._reached(pointer, mask, count)
        self._note(pointer.storage, flat, offsets, mask)
        written = self._for(offsets, value).to(flat.dtype)
        if mask is None:
            flat[offsets] = written.expand(offsets.shape)
        else:
            flat[offsets[mask]] = written.expand(offsets.shape)[mask]

    def accumulate(self, kind: str, pointer: TilePointer, value: Any, mask: Any, count: int) -> Tensor:
        """tl.atomic_add, _max or _min; what it gives is not known, and NaN."""
        flat, offsets, mask = self._reached(pointer, mask, count)
        self._note(pointer.storage, flat, offsets, mask, is_added=True)
        added = self._for(offsets, value).to(flat.dtype).expand(offsets.shape)
        if mask is not None:
            offsets, added = offsets[mask], added[mask]
        if kind == "add":
            flat.index_put_((offsets,), added, accumulate=True)
        else:
            flat.scatter_reduce_(0, offsets.reshape(-1), added.reshape(-1), "a" + kind)
        return torch.full((1,), float("nan"))

    def _reached(
        self, pointer: TilePointer, mask: Any, count: int | None = None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """The storage's elements, offsets and mask of one shape; NotWalked where one lies outside."""
        storage = self._storage(pointer.storage)
        if count is not None:
            if storage.is_input:
                raise NotWalked("a store to an input")
            self.stored.add(pointer.storage)
        flat, offsets = storage.typed(pointer.dtype), tile_of(pointer.offset)
        if mask is not None:
            offsets, mask = torch.broadcast_tensors(*aligned(offsets, tile_of(mask).bool()))
        rows = count if self._copies == 1 or storage.is_input else self._copies * self._programs
        if rows is not None and offsets.shape[0] != rows:
            offsets = offsets.expand(rows, *offsets.shape[1:])
            mask = mask.expand(offsets.shape) if mask is not None else None
        most = flat.numel() if storage.is_input else flat.numel() // self._copies
        offsets = self._inside(offsets, mask, most)
        if self._copies > 1 and not storage.is_input:
            if storage.data.numel() // self._copies % pointer.dtype.itemsize:
                raise NotWalked("a storage of broken elements")
            first = torch.arange(self._copies).repeat_interleave(self._programs) * most
            offsets = offsets + first.reshape(-1, *(1 for _ in range(offsets.dim() - 1)))
        return flat, offsets, mask

    def _inside(self, offsets: Tensor, mask: Tensor | None, most: int) -> Tensor:
        """The offsets, 0 in place of those that the mask leaves out, or that lie outside in a copy that is lost now."""
        touched = offsets if mask is None else torch.where(mask, offsets, 0)
        if not touched.numel():
            return touched
        low, high = torch.aminmax(touched)
        if int(low) >= 0 and int(high) < most:
            return touched
        outside = (touched < 0) | (touched >= most)
        if mask is not None:
            outside = outside & mask
        if self._lenient and most:
            self.strays = True
            return torch.where(outside, 0, touched)
        if self._copies == 1 or not most:
            if most or bool(outside.any()):
                raise OutsideEverywhere
            return touched
        is_for_all = touched.shape[0] == 1
        self.lose(torch.ones(self._copies, dtype=torch.bool) if is_for_all else outside)
        return torch.where(outside, 0, touched)

    @staticmethod
    def _for(offsets: Tensor, value: Any) -> Tensor:
        tile = tile_of(value)
        if tile.dim() > offsets.dim():
            raise NotWalked("a tile for one element")
        return spread(tile, offsets.dim())
