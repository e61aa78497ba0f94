"""Quotients and remainders that are none, under what is known: of what is smaller than its divisor."""

from __future__ import annotations

from collections.abc import Sequence

from gradekit.prove.division import div, mod, split
from gradekit.prove.parts import Substitution
from gradekit.prove.setting import inside
from gradekit.prove.solve import Solver
from gradekit.prove.terms import Atom, Term, Truth


class Simpler:
    """Takes quotients and remainders away that are none: of what is known to be smaller than the divisor."""

    def __init__(self, solver: Solver, hypotheses: Sequence[Truth]) -> None:
        self._put = Substitution(self._simple)
        self.solver, self.hypotheses = solver, hypotheses

    def term(self, value: Term) -> Term:
        """The term, simpler."""
        return self._put.term(value)

    def truth(self, value: Truth) -> Truth:
        """The condition, simpler."""
        return self._put.truth(value)

    def _simple(self, atom: Atom) -> Term | None:
        if atom.op not in ("div", "mod"):
            return None
        a, b = self.term(atom.args[0]), self.term(atom.args[1])
        whole, rest = split(a, b)
        if self.solver.follows(self.hypotheses, inside(rest, b)):
            return rest if atom.op == "mod" else whole
        return div(a, b) if atom.op == "div" else mod(a, b)
