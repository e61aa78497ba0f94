"""What the solver's side knows of a kernel's values: a Term for integers, a Truth for conditions, and these.

The element of a tile at lanes (i, j, ...) is a term over the variables `lane(0, ...)`, `lane(1, ...)`; to move or
broadcast a tile is to put other terms in their place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gradekit.prove.parts import Substitution
from gradekit.prove.terms import ZERO, Term, Truth, div, mod, term, var


@dataclass(frozen=True)
class SymbolicPointer:
    """`offset` elements of `itemsize` bytes from where the kernel's argument number `base` points to."""

    base: int
    offset: Term
    itemsize: int


@dataclass(frozen=True)
class Tile:
    """A tensor descriptor or a block pointer: blocks of `block` elements of a tensor, from `offsets` on."""

    base: SymbolicPointer
    shape: tuple[Term, ...]
    strides: tuple[Term, ...]
    offsets: tuple[Term, ...]
    block: tuple[int, ...]


@dataclass(frozen=True)
class Other:
    """A value that no address needs, or that nothing is known of."""


OTHER = Other()

Value = Term | Truth | SymbolicPointer | Tile | Other


def lane(axis: int, size: int) -> Term:
    """The position along an axis of a tile: 0 where there is but one."""
    return var(f"@{axis}/{size}", 0, size - 1)


def lanes(shape: Sequence[int]) -> tuple[Term, ...]:
    """The position along each axis of a tile of that shape."""
    return tuple(lane(axis, size) for axis, size in enumerate(shape))


def at_lanes(value: Value, shape: Sequence[int], places: Sequence[Term]) -> Value:
    """The element of a tile of `shape` at `places`."""
    moves = {of.atom: place for of, place in zip(lanes(shape), places, strict=True) if of.atom}
    if not moves or isinstance(value, (Other, Tile)):
        return value
    put = Substitution(moves.get)
    return mapped(value, put.term, put.truth)


def mapped(value: Value, on_term: Callable[[Term], Term], on_truth: Callable[[Truth], Truth]) -> Value:
    """`value` with its terms and conditions changed."""
    if isinstance(value, Term):
        return on_term(value)
    if isinstance(value, Truth):
        return on_truth(value)
    if isinstance(value, SymbolicPointer):
        return SymbolicPointer(value.base, on_term(value.offset), value.itemsize)
    return value


def reshaped(value: Value, old: Sequence[int], new: Sequence[int]) -> Value:
    """The same elements in row-major order as a tile of another shape."""
    linear = ZERO
    for place, size in zip(lanes(new), new, strict=True):
        linear = linear * size + place
    places = []
    for size in reversed(old):
        places.append(mod(linear, term(size)))
        linear = div(linear, term(size))
    return at_lanes(value, old, places[::-1])
