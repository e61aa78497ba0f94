"""What a kernel does with memory, as formulas over its program, its loops' turns and its lanes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from gradekit.prove.symbolic_values import lanes
from gradekit.prove.terms import Atom, Term, Truth, at_most, both, term


@dataclass(frozen=True)
class Owed:
    """What must hold for the formulas to mean what the kernel does: `value` from `low`
    to `high`, wherever `path` holds."""

    value: Term
    low: int | None
    high: int | None
    path: Truth
    line: int | None

    @property
    def condition(self) -> Truth:
        """That the value lies between its bounds."""
        bounds = [at_most(term(self.low), self.value)] if self.low is not None else []
        bounds += [at_most(self.value, term(self.high))] if self.high is not None else []
        return both(*bounds)


def in_order(owed: Iterable[Owed]) -> list[Owed]:
    """The longest terms first; the same order in every process."""
    return sorted(owed, key=lambda o: (-len(o.value.parts), o.value.key, o.path.key, str(o.low), o.line or 0))


@dataclass(frozen=True)
class SymbolicAccess:
    """A load, store or atomic: lane by lane, of element `offset` from where argument `base` points, where `mask` holds.

    `path` holds where the operation runs. `base` is None where nothing is known of the address, and then `why` says
    why. `change` is what an atomic does. `owed` belongs to the address and matters in lanes that the mask leaves in;
    `owed_always` to the mask and the path. `turns` are the counters of the loops around it.
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
    owed: frozenset[Owed] = frozenset()
    owed_always: frozenset[Owed] = frozenset()
    why: str = ""
    change: str = ""

    def counters(self, program: Iterable[Term]) -> list[Atom]:
        """What tells its lanes apart: the numbers of the program, the turns and the lanes that there are several of."""
        return [term.atom for term in (*program, *self.turns, *lanes(self.shape)) if term.atom]

    @property
    def active(self) -> Truth:
        """Where memory is touched."""
        return both(self.path, self.mask)


@dataclass
class Accesses:
    """All of a kernel's, in the order in which they stand, and what its loops and branches owe."""

    found: list[SymbolicAccess] = field(default_factory=list)
    reads: set[int] = field(default_factory=set)  # arguments whose elements were taken for constants

    @property
    def stored(self) -> set[int | None]:
        """The arguments that are written through."""
        return {access.base for access in self.found if access.kind != "load"}

