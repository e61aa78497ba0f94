"""What the solver's side knows of a kernel's values: a Term for integers, a Truth for conditions, and these.

The element of a tile at lanes (i, j, ...) is a term over the variables `lane(0, ...)`, `lane(1, ...)`; to move or
broadcast a tile is to put other terms in their place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from gradekit.program import LARGEST_GRID
from gradekit.prove.terms import ZERO, Atom, Substitution, Term, Truth, both, var


@dataclass(frozen=True)
class SymbolicPointer:
    """`offset` elements of `itemsize` bytes from where the kernel's argument number `base` points to."""

    base: int
    offset: Term
    itemsize: int

    def moved(self, by: Term) -> SymbolicPointer:
        """So many elements further on."""
        return replace(self, offset=self.offset + by)

    def is_beside(self, other: SymbolicPointer) -> bool:
        """Whether the two differ by some number of elements alone."""
        return (self.base, self.itemsize) == (other.base, other.itemsize)


@dataclass(frozen=True)
class Tile:
    """A tensor descriptor: blocks of `block` elements of a tensor."""

    base: SymbolicPointer
    shape: tuple[Term, ...]
    strides: tuple[Term, ...]
    block: tuple[int, ...]


@dataclass(frozen=True)
class Other:
    """A value that no address needs, or that nothing is known of."""


OTHER = Other()

PROGRAM = tuple(var(f"program {axis}", 0, most - 1) for axis, most in zip("xyz", LARGEST_GRID, strict=True))
"""The place of a program in its grid: x, y and z."""

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
    put = Substitution(moves.get)
    if not moves or isinstance(value, (Other, Tile)):
        return value
    if isinstance(value, SymbolicPointer):
        return replace(value, offset=put.term(value.offset))
    return put.term(value) if isinstance(value, Term) else put.truth(value)


def reshaped(value: Value, old: Sequence[int], new: Sequence[int]) -> Value:
    """The same elements in row-major order as a tile of another shape."""
    linear = ZERO
    for place, size in zip(lanes(new), new, strict=True):
        linear = linear * size + place
    places = []
    for size in reversed(old):
        places.append(linear % size)
        linear = linear // size
    return at_lanes(value, old, places[::-1])


# --- what a kernel does with memory, as formulas over its program, its loops' turns and its lanes ---------------------


@dataclass(frozen=True)
class Premise:
    """For the formulas to mean what the kernel does, `value` lies from `low` to `high` where `path` holds."""

    value: Term
    low: int | None
    high: int | None
    path: Truth
    line: int | None

    @property
    def condition(self) -> Truth:
        """That the value lies between its bounds."""
        bounds = [self.value >= self.low] if self.low is not None else []
        bounds += [self.value <= self.high] if self.high is not None else []
        return both(*bounds)


def in_order(premises: Iterable[Premise]) -> list[Premise]:
    """The longest terms first; the same order in every process."""
    return sorted(premises, key=lambda o: (-len(o.value.parts), o.value.key, o.path.key, str(o.low), o.line or 0))


@dataclass(frozen=True)
class SymbolicAccess:
    """A load, store or atomic: lane by lane, of element `offset` from where argument `base` points, where `mask` holds.

    `path` holds where the operation runs. `base` is None where nothing is known of the address, and then `why` says
    why. `change` is what an atomic does. `premises` are those of the address, for lanes that the mask leaves in;
    `premises_always` are those of the mask and the path. `turns` are the counters of the loops around it.
    """

    kind: str
    line: int | None
    order: int
    base: int | None
    offset: Term
    mask: Truth
    path: Truth
    shape: tuple[int, ...]
    itemsize: int
    turns: tuple[Term, ...] = ()
    premises: frozenset[Premise] = frozenset()
    premises_always: frozenset[Premise] = frozenset()
    why: str = ""
    change: str = ""

    def counters(self, program: Iterable[Term]) -> list[Atom]:
        """What tells its lanes apart: the numbers of the program, the turns and the lanes that there are several of."""
        return [term.atom for term in (*program, *self.turns, *lanes(self.shape)) if term.atom]

    @property
    def active(self) -> Truth:
        """Where memory is touched."""
        return both(self.path, self.mask)
