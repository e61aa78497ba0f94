"""Exact polynomials over the rationals (or modulo a power of two) in atoms, with the
algebra of what the atoms stand for.

A polynomial is a dict from monomials to coefficients; a monomial is a sorted tuple of (atom, exponent). Atoms are
numbers that an `Algebra` gives to what they stand for:

    ("variable", name)     an input's element        ("constant", name)   pi, ln2: exponents may be fractions
    ("inverse", key)       1 / polynomial            ("exp", monomial)    e ** monomial: exponents may be fractions
    ("positive", key)      1 where the polynomial is above 0, else 0; its square is itself
    ("sqrt", key)          whose square is the polynomial; exponents are 0 and 1
    ("max", keys)          the largest of several    ("apply", name, keys)   a function nothing else is known of

Two polynomials without "inverse" atoms that are equal as dicts are equal for all
values; where they are not, they may be.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from gradekit.formulas.graph import NoFormula

Monomial = tuple[tuple[int, Any], ...]
Polynomial = dict[Monomial, Any]
Key = tuple[tuple[Monomial, Any], ...]

MOST_MONOMIALS = 4000
MOST_PRODUCTS = 40_000
"""Monomials of one polynomial, and of one product before like ones are added up."""

_TIMELESS = ("positive",)
_HOPELESS = (*_TIMELESS, "sqrt")
"""Atoms that are no factor of a common denominator."""


def key_of(p: Polynomial) -> Key:
    """A polynomial as something that can be hashed."""
    return tuple(sorted(p.items()))


class Algebra:
    """Makes atoms and computes with polynomials; coefficients are taken modulo `modulus`, where that is not 0."""

    def __init__(self, modulus: int = 0) -> None:
        self.atoms: list[tuple[Any, ...]] = []
        self.modulus = modulus
        self._numbers: dict[tuple[Any, ...], int] = {}

    def atom(self, *what: Any) -> int:
        """The number of the atom that stands for `what`."""
        found = self._numbers.get(what)
        if found is None:
            found = self._numbers[what] = len(self.atoms)
            self.atoms.append(what)
        return found

    def of_atom(self, *what: Any) -> Polynomial:
        """The polynomial that is one atom."""
        return {((self.atom(*what), 1),): 1}

    def number(self, value: Any) -> Polynomial:
        """The polynomial that is a rational number."""
        value = self._reduced(value)
        return {(): value} if value else {}

    def _reduced(self, value: Any) -> Any:
        if not self.modulus:
            return value
        if Fraction(value).denominator != 1:
            raise NoFormula("a fraction among integers")
        return int(value) % self.modulus

    # --- sums and products -------------------------------------------------------------------------------------------

    def sum(self, terms: Iterable[Polynomial]) -> Polynomial:
        """The sum of any number of polynomials."""
        total: Polynomial = {}
        for term in terms:
            for monomial, coefficient in term.items():
                total[monomial] = total.get(monomial, 0) + coefficient
        return self._tidy(total)

    def _tidy(self, p: Polynomial) -> Polynomial:
        if self.modulus:
            p = {monomial: self._reduced(coefficient) for monomial, coefficient in p.items()}
        if len(p) > MOST_MONOMIALS:
            raise NoFormula("a formula of this call is too long when it is multiplied out")
        return {monomial: coefficient for monomial, coefficient in p.items() if coefficient}

    def scaled(self, p: Polynomial, factor: Any) -> Polynomial:
        """p times a rational number."""
        return self._tidy({monomial: coefficient * factor for monomial, coefficient in p.items()})

    def difference(self, p: Polynomial, q: Polynomial) -> Polynomial:
        """p - q."""
        return self.sum((p, self.scaled(q, -1)))

    def product(self, p: Polynomial, q: Polynomial) -> Polynomial:
        """p times q, with squares of roots and of truths taken out."""
        if len(p) * len(q) > MOST_PRODUCTS:
            raise NoFormula("a formula of this call is too long when it is multiplied out")
        total: Polynomial = {}
        roots = []
        for m, a in p.items():
            for n, b in q.items():
                monomial, squares = self._merged(m, n)
                if squares:
                    roots.append(self._without_squares(monomial, squares, a * b))
                else:
                    total[monomial] = total.get(monomial, 0) + a * b
        return self.sum((total, *roots)) if roots else self._tidy(total)

    def _merged(self, m: Monomial, n: Monomial) -> tuple[Monomial, list[int]]:
        """The product of two monomials, and the roots that it has more than once."""
        if not m or not n:
            return m or n, []
        exponents = dict(m)
        squares = []
        for atom, exponent in n:
            here = exponents.get(atom, 0) + exponent
            kind = self.atoms[atom][0]
            if kind in _TIMELESS:
                here = 1
            elif kind == "sqrt" and here > 1:
                squares.append(atom)
            exponents[atom] = here
        return tuple(sorted((a, e) for a, e in exponents.items() if e)), squares

    def _without_squares(self, monomial: Monomial, squares: list[int], coefficient: Any) -> Polynomial:
        rest = {tuple((a, e) for a, e in monomial if a not in squares): coefficient}
        for atom, exponent in monomial:
            if atom in squares:
                rest = self.product(rest, self.power(dict(self.atoms[atom][1]), exponent // 2))
                rest = self.product(rest, {((atom, 1),): 1}) if exponent % 2 else rest
        return rest

    def power(self, p: Polynomial, exponent: int) -> Polynomial:
        """p to a whole power."""
        if exponent < 0:
            return self.power(self.inverse(p), -exponent)
        result = self.number(1)
        for _ in range(exponent):
            result = self.product(result, p)
        return result

    # --- quotients ---------------------------------------------------------------------------------------------------

    def parts(self, p: Polynomial) -> tuple[Polynomial, Polynomial]:
        """p as a monomial with a coefficient, times a polynomial that has no such factor."""
        first, *others = p
        common = {a: e for a, e in first if self.atoms[a][0] not in _HOPELESS}
        for monomial in others:
            here = dict(monomial)
            common = {a: min(e, here.get(a, 0)) for a, e in common.items()}
            for atom, exponent in monomial:
                if exponent < 0 and self.atoms[atom][0] not in _HOPELESS:
                    common[atom] = min(common.get(atom, 0), exponent)
        content: Monomial = tuple(sorted((a, e) for a, e in common.items() if e))
        lead = p[min(p)]
        away = tuple((a, -e) for a, e in content)
        rest = {self._merged(monomial, away)[0]: Fraction(c) / lead for monomial, c in p.items()}
        return {content: lead}, rest

    def inverse(self, p: Polynomial) -> Polynomial:
        """1 / p; common factors and the leading coefficient stand before the atom, so that multiples share it."""
        if not p:
            raise NoFormula("a division by zero")
        if self.modulus:
            raise NoFormula("a division of integers")
        content, rest = self.parts(p)
        ((monomial, lead),) = content.items()
        outside = {tuple((a, -e) for a, e in monomial): 1 / Fraction(lead)}
        if rest == {(): 1}:
            return outside
        if len(rest) == 1 and (root := self._only_root(rest)) is not None:
            return self.product(outside, self.product(rest, self.inverse(dict(self.atoms[root][1]))))
        return self.product(outside, self.of_atom("inverse", key_of(rest)))

    def _only_root(self, p: Polynomial) -> int | None:
        ((monomial, _),) = p.items()
        return monomial[0][0] if len(monomial) == 1 and self.atoms[monomial[0][0]][0] == "sqrt" else None

    def cleared(self, p: Polynomial) -> Polynomial:
        """p times what its "inverse" atoms are the inverses of: 0 where p is, and nowhere else."""
        for _ in range(12):
            atom = max((a for m in p for a, _ in m if self.atoms[a][0] == "inverse"), default=None)
            if atom is None:
                return p
            p = self._times_denominator(p, atom)
        raise NoFormula("too many denominators")

    def _times_denominator(self, p: Polynomial, atom: int) -> Polynomial:
        denominator = dict(self.atoms[atom][1])
        by_power: dict[int, Polynomial] = {}
        for monomial, coefficient in p.items():
            exponent = next((e for a, e in monomial if a == atom), 0)
            by_power.setdefault(exponent, {})[tuple((a, e) for a, e in monomial if a != atom)] = coefficient
        highest = max(by_power)
        return self.sum(self.product(q, self.power(denominator, highest - e)) for e, q in by_power.items())

    # --- what a polynomial is made of --------------------------------------------------------------------------------

    def inside(self, p: Polynomial) -> set[int]:
        """All atoms of a polynomial, and those within them."""
        found: set[int] = set()
        waiting = [a for monomial in p for a, _ in monomial]
        while waiting:
            atom = waiting.pop()
            if atom not in found:
                found.add(atom)
                waiting += self._within(self.atoms[atom])
        return found

    def _within(self, what: tuple[Any, ...]) -> list[int]:
        keys: tuple[Key, ...] = ()
        if what[0] == "exp":
            return [a for a, _ in what[1]]
        if what[0] in ("inverse", "positive", "sqrt"):
            keys = (what[1],)
        elif what[0] == "max":
            keys = what[1]
        elif what[0] == "apply":
            keys = what[2]
        return [a for key in keys for monomial, _ in key for a, _ in monomial]
