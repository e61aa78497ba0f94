"""What may stand in the place of what: values of one kind, and what is added to or multiplied with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from gradekit.interpreter.tile_values import TilePointer


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
