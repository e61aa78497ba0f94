"""Regions of values as a solver sees them: whether there are any values in one, and which.

Variables are reals; of what a function gives only its sign is known. So a region that is empty for the solver is empty,
and values that it finds may still lie outside: they are tried. Limits count the solver's own steps.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import z3

from gradekit.formulas.algebra import Algebra, Polynomial
from gradekit.formulas.normal import Normal
from gradekit.formulas.value_paths import CONSTANTS, ValuePath

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
