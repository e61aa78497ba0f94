"""Values of a kernel for all programs at once: a tensor has the programs as its first dimension (or 1, where all have
the same), then the tile's own; a Python number is the same for all. Integers are int64, whatever Triton makes of
them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gradekit.arithmetic import OF_TWO

MOST_ELEMENTS = 1 << 20
"""Of one tile of all programs."""

MOST_POWER = 64
"""The largest exponent of two Python numbers."""


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


DTYPES = {
    "float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32, "float64": torch.float64,
    "int1": torch.bool, "int8": torch.int64, "int16": torch.int64, "int32": torch.int64, "int64": torch.int64,
    "uint8": torch.int64, "uint32": torch.int64, "uint64": torch.int64,
    "fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32, "fp64": torch.float64,
    "i32": torch.int64, "i64": torch.int64,
}  # fmt: skip
"""What values of Triton's dtypes are here, by the names that source and constants have."""


def aligned(one: Any, other: Any) -> tuple[Any, Any]:
    """Two values with equally many dimensions: those that a tile lacks come right behind that of the programs."""
    if isinstance(one, Tensor) and isinstance(other, Tensor) and one.shape != other.shape:
        most = max(one.dim(), other.dim())
        one, other = spread(one, most), spread(other, most)
        elements = 1
        for a, b in zip(one.shape, other.shape, strict=True):
            elements *= max(a, b)
        if elements > MOST_ELEMENTS:
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
    return _ON_TILES[op](left, right)


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
    if op in ("**", "<<") and abs(right) > MOST_POWER:
        raise NotWalked("a large power")
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


def cast(input: Any, dtype: torch.dtype, *_: Any, **__: Any) -> Any:
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
    known = yes if isinstance(yes, Tensor) else no
    condition, _ = aligned(condition, known)
    if isinstance(yes, Tensor):
        _, yes = aligned(condition, yes)
    if isinstance(no, Tensor):
        _, no = aligned(condition, no)
    return torch.where(condition, yes, no)


# --- what may stand in the place of what: values of one kind, and what is added to or multiplied with them ------------


@dataclass(frozen=True)
class ValueKind:
    """`of` is "pointer", "condition", "integer" or "float"; `shape` is the tile's own."""

    of: str
    shape: tuple[int, ...]


def kind_of(value: Any) -> ValueKind | None:
    """The kind of a value; None of what is no number, tile or pointer."""
    if isinstance(value, TilePointer):
        return ValueKind(f"pointer {value.storage}", _shape(value.offset))
    if isinstance(value, Tensor):
        of = "float" if value.is_floating_point() else "condition" if value.dtype.itemsize == 1 else "integer"
        return ValueKind(of, _shape(value))
    if isinstance(value, (int, float)):
        of = "condition" if isinstance(value, bool) else "integer" if isinstance(value, int) else "float"
        return ValueKind(of, ())
    return None


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
