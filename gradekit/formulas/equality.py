"""Whether two formulas are equal for all values: by their normal forms, in each region that a condition makes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from gradekit.formulas.algebra import Algebra, Polynomial
from gradekit.formulas.constants import Constants
from gradekit.formulas.graph import Graph, NoFormula
from gradekit.formulas.normal import NormalForms
from gradekit.formulas.region_solver import EMPTY_STEPS, RegionSolver
from gradekit.formulas.value_paths import Fork, ValuePath

MOST_PATHS = 96
"""Regions of one element that are looked at."""
MOST_FORMS = 4000
"""Regions of all elements together."""


@dataclass
class Unequal:
    """A region in which two formulas are not known to be equal: nodes of the graph, and the path to it."""

    one: int
    other: int
    path: ValuePath


@dataclass
class Equality:
    """Compares formulas of one graph; `regions` counts those that were looked at."""

    graph: Graph
    algebra: Algebra = field(init=False)
    constants: Constants = field(init=False)
    regions: int = 0
    _forms: dict[frozenset[object], NormalForms] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.algebra = Algebra(self.graph.modulus)
        self.constants = Constants(self.algebra)

    def tell_reference(self, nodes: list[int]) -> None:
        """The numbers of the reference's formulas are what a kernel's rounded ones may stand for."""
        for node in self.graph.cone(nodes):
            kind, *rest = self.graph.nodes[node]
            if kind == "number" and rest[1] != "exact" and rest[0] != "nan":
                self.constants.tell(rest[0], rest[1])

    def unequal(self, one: int, other: int) -> Iterator[Unequal]:
        """The regions in which two formulas are not known to be equal; none where they are equal for all values.

        Raises:
            NoFormula: there are too many regions, or a formula is too long.
        """
        if one == other:
            return
        waiting, seen = [ValuePath()], 0
        while waiting:
            path = waiting.pop()
            seen += 1
            self.regions += 1
            if seen > MOST_PATHS or self.regions > MOST_FORMS:
                raise NoFormula("too many regions of values")
            try:
                if not self._equal(one, other, path) and not self._is_empty(path):
                    yield Unequal(one, other, path)
            except Fork as fork:
                waiting += path.forked(fork, self.algebra)

    def _equal(self, one: int, other: int, path: ValuePath) -> bool:
        forms = self.forms(path)
        p, q = forms.of(one), forms.of(other)
        if isinstance(p, float) or isinstance(q, float):
            return str(p) == str(q)
        d = self.algebra.difference(p, q)
        if not d or not self.algebra.cleared(d):
            return True
        self._split(d, path)
        return False

    def _is_empty(self, path: ValuePath) -> bool:
        return len(path.signs) > 1 and RegionSolver(self.algebra, steps=EMPTY_STEPS).is_empty(path)

    def forms(self, path: ValuePath) -> NormalForms:
        """Normal forms on a path, which several elements may share."""
        key = frozenset(path.signs.items())
        if key not in self._forms:
            self._forms[key] = NormalForms(self.graph, self.algebra, self.constants, path)
        return self._forms[key]

    def _split(self, d: Polynomial, path: ValuePath) -> None:
        """Raises Fork for a sign that decides which part of a maximum counts, if there is one in the difference."""
        atoms = self.algebra.atoms
        inside = [a for a in self.algebra.inside(d) if atoms[a][0] == "positive" and atoms[a][1] not in path.signs]
        plain = [
            a for a in inside if not any(atoms[b][0] == "positive" for b in self.algebra.inside(dict(atoms[a][1])))
        ]
        if plain:
            raise Fork(atoms[min(plain)][1], frozenset((1,)))
