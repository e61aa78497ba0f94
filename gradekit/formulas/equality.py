"""Whether two formulas are equal for all values: by their normal forms, in each region that a condition makes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import z3

from gradekit.formulas.algebra import Algebra, Polynomial
from gradekit.formulas.constants import Constants
from gradekit.formulas.graph import Graph, NoFormula
from gradekit.formulas.normal import CONSTANTS, Fork, Normal, NormalForms, ValuePath

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


# --- whether there are any values in a region, and which --------------------------------------------------------------
#
# Variables are reals; of what a function gives only its sign is known. So a region that is empty for the solver is
# empty, and values that it finds may still lie outside: they are tried. Limits count the solver's own steps.

STEPS = 1_000_000
EMPTY_STEPS = 200_000
"""What the solver may take for values, and to see that there are none."""


class RegionSolver:
    """Asks about one region; with a `step`, variables are whole numbers over it.

    `promise` gives the least and the most absolute value of a variable, and whether it may be negative.
    """

    promise: Callable[[Any], tuple[float, float, bool]] | None = None

    def __init__(self, algebra: Algebra, step: int = 0, steps: int = STEPS) -> None:
        self._algebra, self._step = algebra, step
        self._context = z3.Context()
        self._solver = z3.Solver(ctx=self._context)
        self._solver.set("rlimit", steps)
        self._atoms: dict[Any, Any] = {}
        self._model: Any = None

    def is_empty(self, path: ValuePath) -> bool:
        """Whether no values are in the region of a path."""
        self._add(path, 0.0)
        return bool(self._solver.check() == z3.unsat)

    def meets(self, path: ValuePath, one: Normal, other: Normal, margin: float) -> bool:
        """Whether there are values in the region, by a margin, for which two normal forms differ."""
        self._add(path, margin)
        if not isinstance(one, float) and not isinstance(other, float):
            self._solver.add(z3.Not(self._term(one) == self._term(other)))
        met = self._solver.check() == z3.sat
        self._model = self._solver.model() if met else None
        return bool(met)

    def value(self, name: Any, otherwise: float) -> float:
        """The value that was found for a variable; `otherwise` where any would do."""
        found = self._atoms.get((self._algebra.atom("variable", name), 1))
        if found is None:
            return otherwise
        number = self._model.eval(found, model_completion=True)
        exact = number if z3.is_rational_value(number) else number.approx(20)
        return float(exact.as_fraction())

    def _add(self, path: ValuePath, margin: float) -> None:
        for key, signs in path.signs.items():
            term = self._term(dict(key))
            above, below = (term >= margin, term <= -margin) if margin else (term > 0, term < 0)
            holds = {1: above, 0: term == 0, -1: below}
            self._solver.add(z3.Or(*(holds[sign] for sign in sorted(signs))))

    def _term(self, p: Polynomial) -> Any:
        terms = [z3.RealVal(str(c), self._context) * self._monomial(monomial) for monomial, c in p.items()]
        return z3.Sum(terms) if terms else z3.RealVal(0, self._context)

    def _monomial(self, monomial: Any) -> Any:
        result = z3.RealVal(1, self._context)
        for atom, exponent in monomial:
            if Fraction(exponent).denominator > 1:
                result = result * self._atom(atom, exponent)
                continue
            for _ in range(abs(int(exponent))):
                result = result * self._atom(atom, 1) if exponent > 0 else result / self._atom(atom, 1)
        return result

    def _atom(self, atom: int, exponent: Any) -> Any:
        """An atom, or its root, as a real of which little is known."""
        if (atom, exponent) not in self._atoms:
            kind, *what = self._algebra.atoms[atom]
            found = z3.Real(f"a{len(self._atoms)}", self._context)
            if kind == "variable":
                found = self._variable(found, what[0])
            elif kind == "constant" and exponent == 1:
                near = CONSTANTS[what[0]]
                self._solver.add(found > near - 1e-9, found < near + 1e-9)
            elif kind in ("exp", "constant"):
                self._solver.add(found > 0)
            elif kind == "sqrt":
                self._solver.add(found >= 0)
            elif kind == "positive":
                self._solver.add(z3.Or(found == 0, found == 1))
            self._atoms[atom, exponent] = found
        return self._atoms[atom, exponent]

    def _variable(self, found: Any, name: Any) -> Any:
        if self._step:
            found = z3.ToReal(z3.Int(f"n{len(self._atoms)}", self._context)) / self._step
        if self.promise is not None:
            least, most, signed = self.promise(name)
            size = z3.If(found < 0, -found, found)
            self._solver.add(size <= most, size >= least)
            if not signed:
                self._solver.add(found >= 0)
        return found
