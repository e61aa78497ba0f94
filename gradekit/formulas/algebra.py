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

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any

import numpy

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


# --- what a rounded number stands for ---------------------------------------------------------------------------------
#
# A kernel has 0.79788456 where the reference has sqrt(2 / pi), and 0.1 is not one tenth in any binary format. Over
# the reals, a number is read as the simplest one that rounds to it: one of the reference's own (or the product of
# two), a constant such as pi or log2(e) and its simple multiples, a short decimal, a fraction of small numbers; or
# else as what it is.

CONSTANTS = {"pi": math.pi, "ln2": math.log(2), "ln10": math.log(10), "e": math.e}

DIGITS = {"float32": 7, "float16": 4, "bfloat16": 3, "float64": 12}
LARGEST_DENOMINATOR = {"float32": 512, "float16": 16, "bfloat16": 8, "float64": 1 << 16}
ULP = {"float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7, "float64": 2.0**-52}

_HALF = Fraction(1, 2)
_KNOWN: tuple[tuple[tuple[str, Any], ...], ...] = (
    (("ln2", 1),), (("ln2", -1),), (("ln10", 1),), (("ln10", -1),), (("ln2", 1), ("ln10", -1)), (("pi", 1),),
    (("pi", -1),), (("sqrt2", 1),), (("pi", _HALF),), (("pi", -_HALF),), (("sqrt2", 1), ("pi", -_HALF)),
    (("sqrt2", 1), ("pi", _HALF)),
)  # fmt: skip
"""Products of powers of constants; each times any power of two is known too."""


class Constants:
    """Reads numbers; those of the reference come first, and a kernel's that round one of them mean the same."""

    def __init__(self, algebra: Algebra) -> None:
        self._algebra = algebra
        self._known: list[tuple[float, Polynomial]] = [(_size(known), self._product(known)) for known in _KNOWN]
        self._given: list[tuple[float, Polynomial]] = []

    def _product(self, factors: tuple[tuple[str, Any], ...]) -> Polynomial:
        result = self._algebra.number(1)
        for name, power in factors:
            what = ("sqrt", (((), 2),)) if name == "sqrt2" else ("constant", name)
            result = self._algebra.product(result, {((self._algebra.atom(*what), power),): 1})
        return result

    def tell(self, value: float, dtype: str) -> None:
        """The reference has this number."""
        if value not in (0, 1) and math.isfinite(value):
            self._given.append((abs(value), self._own(abs(value), dtype)))

    def read(self, value: float, dtype: str) -> Polynomial:
        """What a finite number of that dtype stands for."""
        if dtype == "exact":
            return self._algebra.number(int(value))
        size = abs(value)
        found = next((p for close, p in self._candidates(size, dtype) if close), None) or self._own(size, dtype)
        return self._algebra.scaled(found, -1) if value < 0 else found

    def _candidates(self, size: float, dtype: str) -> Iterator[tuple[bool, Polynomial]]:
        for number, p in self._given:
            yield from self._near(size, number, p, ULP[dtype] / 2)
        for number, p in self._known:
            yield from self._near(size, number, p, ULP[dtype])
        for i, (a, p) in enumerate(self._given):
            for b, q in self._given[i:]:
                yield from self._near(size, a * b, lambda p=p, q=q: self._algebra.product(p, q), ULP[dtype])

    def _near(self, size: float, number: float, p: Any, allowed: float) -> Iterator[tuple[bool, Polynomial]]:
        """p times the power of two that brings it to `size`, if it does."""
        power = round(math.log2(size / number))
        if abs(power) <= 8 and abs(size - number * 2.0**power) <= allowed * size * 1.01:
            found = p() if callable(p) else p
            yield True, self._algebra.scaled(found, Fraction(2) ** power)

    def _own(self, size: float, dtype: str) -> Polynomial:
        for number, p in self._known if dtype == "float64" else ():
            if (found := next(self._near(size, number, p, ULP[dtype]), None)) is not None:
                return found[1]
        return self._algebra.number(simplest(size, dtype))


def simplest(size: float, dtype: str) -> Fraction:
    """The short decimal or small fraction that rounds to a positive number; else the number itself."""
    decimal = Fraction(f"{size:.{DIGITS[dtype] - 1}e}")
    if _rounded(float(decimal), dtype) == size:
        return decimal
    fraction = Fraction(size).limit_denominator(LARGEST_DENOMINATOR[dtype])
    return fraction if fraction and abs(float(fraction) - size) <= ULP[dtype] * size else Fraction(size)


def _rounded(value: float, dtype: str) -> float:
    if dtype == "bfloat16":
        bits = int(numpy.float32(value).view(numpy.uint32))
        return float(numpy.uint32((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view(numpy.float32))
    return float(numpy.dtype(dtype).type(value))


def _size(known: tuple[tuple[str, Any], ...]) -> float:
    return math.prod((math.sqrt(2) if name == "sqrt2" else CONSTANTS[name]) ** float(power) for name, power in known)
