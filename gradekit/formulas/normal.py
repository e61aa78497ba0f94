"""The normal form of a formula in a region of values: a polynomial, or an infinity, or NaN.

What a formula asks of values (x > 0) is answered by the path, or raises `Fork`. Functions come down to few: tanh and
the logistic function to exp, rsqrt to sqrt, min and abs to max.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from gradekit.formulas.algebra import CONSTANTS, Algebra, Constants, Key, Polynomial, key_of
from gradekit.formulas.graph import Graph, NoFormula

Normal = Polynomial | float
"""A polynomial; inf, -inf or nan."""


class NormalForms:
    """Normal forms of the nodes of a graph on one path."""

    def __init__(self, graph: Graph, algebra: Algebra, constants: Constants, path: ValuePath) -> None:
        self.graph, self.algebra, self.constants, self.path = graph, algebra, constants, path
        self._known: dict[int, Normal] = {}

    def of(self, node: int) -> Normal:
        """The normal form of a node.

        Raises:
            Fork: it depends on a condition that the path does not decide.
            NoFormula: it is too long, or there is none.
        """
        found = self._known.get(node)
        if found is None:
            kind, *operands = self.graph.nodes[node]
            found = self._known[node] = _RULES[kind](self, *operands)
        return found

    # --- leaves and arithmetic ---------------------------------------------------------------------------------------

    def number(self, value: Any, dtype: str) -> Normal:
        """What a number stands for."""
        value = math.nan if value == "nan" else value
        return self.constants.read(value, dtype) if math.isfinite(value) else value

    def variable(self, name: Any) -> Normal:
        """An element of an input, or what an equation of the path says that it is."""
        atom = self.algebra.atom("variable", name)
        if atom in self.path.replaced:
            return self._replaced(atom)
        return {((atom, 1),): 1}

    def _replaced(self, atom: int) -> Polynomial:
        terms = []
        for monomial, coefficient in self.path.replaced[atom].items():
            term: Polynomial = self.algebra.number(coefficient)
            for other, exponent in monomial:
                factor: Polynomial = {((other, exponent),): 1}
                if other in self.path.replaced:
                    factor = self.algebra.power(self._replaced(other), exponent)
                term = self.algebra.product(term, factor)
            terms.append(term)
        return self.algebra.sum(terms)

    def add(self, *nodes: int) -> Normal:
        """A sum."""
        terms = [self.of(node) for node in nodes]
        special = {str(term) for term in terms if isinstance(term, float)}
        if special:
            return float(special.pop()) if len(special) == 1 else math.nan
        return self.algebra.sum(terms)  # type: ignore[arg-type]

    def mul(self, a: int, b: int) -> Normal:
        """A product."""
        p, q = self.of(a), self.of(b)
        if isinstance(p, float) or isinstance(q, float):
            return _sign(self, p) * _sign(self, q) * math.inf if _sign(self, p) and _sign(self, q) else math.nan
        return self.algebra.product(p, q)

    def div(self, a: int, b: int) -> Normal:
        """A quotient."""
        p, q = self.of(a), self.of(b)
        if isinstance(q, float):
            return math.nan if isinstance(p, float) or math.isnan(q) else {}
        if isinstance(p, float):
            return p * _sign(self, q) if _sign(self, q) else math.nan
        if not q:
            return math.nan if not p else _sign(self, p) * math.inf
        return self.algebra.product(p, self.algebra.inverse(q))

    # --- conditions --------------------------------------------------------------------------------------------------

    def _difference(self, a: int, b: int) -> Normal:
        p, q = self.of(a), self.of(b)
        if isinstance(p, float) or isinstance(q, float):
            x = p if isinstance(p, float) else 0.0
            y = q if isinstance(q, float) else 0.0
            return 0.0 if x == y else x - y
        return self.algebra.difference(p, q)

    def _has_sign(self, d: Normal, sign: int) -> bool:
        if isinstance(d, float):
            return not math.isnan(d) and (d > 0) - (d < 0) == sign
        if self.algebra.modulus:
            raise NoFormula("a comparison of integers that may wrap")
        known = sign_of(d, self.algebra)
        if known is not None:
            return known == sign
        key, direction = oriented(d, self.algebra)
        return self.path_says(key, frozenset((sign * direction,)))

    def path_says(self, key: Any, signs: frozenset[int]) -> bool:
        """Whether the polynomial of `key` has one of these signs; raises Fork where the path does not know."""
        known = self.path.signs.get(key)
        if known is None or (known & signs and known - signs):
            raise Fork(key, signs)
        return bool(known & signs)

    def gt(self, a: int, b: int) -> Normal:
        """Whether a > b."""
        return self.algebra.number(int(self._has_sign(self._difference(a, b), 1)))

    def eq(self, a: int, b: int) -> Normal:
        """Whether a = b."""
        d = self._difference(a, b)
        return self.algebra.number(int(d == 0.0 if isinstance(d, float) else self._has_sign(d, 0)))

    def holds(self, node: int) -> bool:
        """Whether a condition holds."""
        found = self.of(node)
        if isinstance(found, float) or found not in ({}, {(): 1}):
            raise NoFormula("a condition that is a number")
        return bool(found)

    def negated(self, node: int) -> Normal:
        """Not a condition."""
        return self.algebra.number(int(not self.holds(node)))

    def both(self, a: int, b: int) -> Normal:
        """Two conditions together; the second is looked at only where the first holds."""
        return self.algebra.number(int(self.holds(a) and self.holds(b)))

    def either(self, a: int, b: int) -> Normal:
        """One condition or the other."""
        return self.algebra.number(int(self.holds(a) or self.holds(b)))

    def select(self, c: int, a: int, b: int) -> Normal:
        """One of two by a condition."""
        return self.of(a) if self.holds(c) else self.of(b)

    # --- the largest of several --------------------------------------------------------------------------------------

    def max(self, *nodes: int) -> Normal:
        """The largest: of two, by the sign of their difference; of more, an atom of its own."""
        terms = [self.of(node) for node in nodes]
        if any(isinstance(term, float) and not term < 0 for term in terms):
            return math.nan if any(isinstance(t, float) and math.isnan(t) for t in terms) else math.inf
        keys = {key_of(term): term for term in terms if not isinstance(term, float)}
        if len(keys) < 2:
            return next(iter(keys.values()), -math.inf)
        if self.algebra.modulus:
            raise NoFormula("a comparison of integers that may wrap")
        if len(keys) == 2:
            return self._larger(*(keys[key] for key in sorted(keys)))
        return self.algebra.of_atom("max", tuple(sorted(keys)))

    def _larger(self, p: Polynomial, q: Polynomial) -> Polynomial:
        """q + max(p - q, 0); where the path knows, one of the two."""
        d = self.algebra.difference(p, q)
        known = sign_of(d, self.algebra)
        if known is not None:
            return p if known > 0 else q
        key, direction = oriented(d, self.algebra)
        signs = self.path.signs.get(key, frozenset((-1, 1)))
        if not ({-1, 1} <= signs):
            return (p if direction > 0 else q) if signs & ABOVE else q if direction > 0 or signs == AT else p
        positive = self.algebra.of_atom("positive", key)
        if direction < 0:
            positive = self.algebra.difference(self.algebra.number(1), positive)
        return self.algebra.sum((q, self.algebra.product(d, positive)))

    # --- functions ---------------------------------------------------------------------------------------------------

    def apply(self, name: str, *nodes: int) -> Normal:
        """A function, by its rule, or one of which nothing is known."""
        operands = [self.of(node) for node in nodes]
        rule = FUNCTIONS.get(name)
        if rule is not None:
            return rule(self, *operands)
        if any(isinstance(p, float) for p in operands) or self.algebra.modulus:
            raise NoFormula(f"{name} of an infinity, or of integers")
        return self.algebra.of_atom("apply", name, tuple(key_of(p) for p in operands))  # type: ignore[arg-type]


_RULES: dict[str, Callable[..., Normal]] = {
    "number": NormalForms.number, "variable": NormalForms.variable, "add": NormalForms.add, "mul": NormalForms.mul,
    "div": NormalForms.div, "gt": NormalForms.gt, "eq": NormalForms.eq, "not": NormalForms.negated,
    "and": NormalForms.both, "or": NormalForms.either, "select": NormalForms.select, "max": NormalForms.max,
    "apply": NormalForms.apply,
}  # fmt: skip


def _sign(forms: NormalForms, p: Normal) -> int:
    """The sign of a factor, which must be known; 0 for NaN and 0."""
    if isinstance(p, float):
        return (p > 0) - (p < 0)
    if forms._has_sign(p, 1):
        return 1
    return -1 if forms._has_sign(p, -1) else 0


_PRIMES = (2, 3, 5, 7, 11, 13)

# --- functions: each has the values of the real function of its name -------------------------------------------------


def _exp(forms: NormalForms, p: Normal) -> Normal:
    """A product of powers: exp(a + b) = exp(a) exp(b); exp(n ln 2) = 2**n, exp(log(q)) = q."""
    algebra = forms.algebra
    if isinstance(p, float):
        return {} if p == -math.inf else p
    if algebra.modulus:
        raise NoFormula("exp of integers")
    result = algebra.number(1)
    for monomial, coefficient in p.items():
        result = algebra.product(result, _exp_of(algebra, monomial, coefficient))
    return result


def _exp_of(algebra: Algebra, monomial: Any, coefficient: Any) -> Polynomial:
    coefficient = Fraction(coefficient)
    if coefficient.denominator == 1 and len(monomial) == 1 and monomial[0][1] == 1:
        what = algebra.atoms[monomial[0][0]]
        if what == ("constant", "ln2"):
            return algebra.number(Fraction(2) ** coefficient.numerator)
        if what[:2] == ("apply", "log"):
            return algebra.power(dict(what[2][0]), coefficient.numerator)
    atom = algebra.atom("exp", monomial) if monomial else algebra.atom("constant", "e")
    return {((atom, coefficient if coefficient.denominator > 1 else coefficient.numerator),): 1}


def _log(forms: NormalForms, p: Normal) -> Normal:
    """log(exp(a) q) = a + log(q); of constants, the sum of their logs."""
    algebra = forms.algebra
    if isinstance(p, float) or not p:
        return math.inf if p == math.inf else math.nan if p else -math.inf
    content, rest = algebra.parts(p)
    ((monomial, lead),) = content.items()
    outside: list[Polynomial] = []
    kept = []
    for atom, exponent in monomial:
        what = algebra.atoms[atom]
        if what[0] == "exp":
            outside.append({what[1]: exponent})
        elif what == ("constant", "e"):
            outside.append(algebra.number(exponent))
        else:
            kept.append((atom, exponent))
    inside = algebra.product({tuple(kept): lead}, rest)
    if inside == {(): 1}:
        return algebra.sum(outside)
    if inside == {(): 2}:
        return algebra.sum((*outside, algebra.of_atom("constant", "ln2")))
    return algebra.sum((*outside, algebra.of_atom("apply", "log", (key_of(inside),))))


def _sqrt(forms: NormalForms, p: Normal) -> Normal:
    """The root, without squares of rationals before it."""
    algebra = forms.algebra
    if isinstance(p, float) or not p:
        return p
    if set(p) == {()}:
        return _sqrt_of_number(algebra, Fraction(p[()]))
    lead = abs(Fraction(p[max(p)]))
    inside = algebra.scaled(p, 1 / lead)
    return algebra.product(_sqrt_of_number(algebra, lead), algebra.of_atom("sqrt", key_of(inside)))


def _sqrt_of_number(algebra: Algebra, value: Fraction) -> Polynomial:
    if value < 0:
        raise NoFormula("the root of a negative number")
    inside, outside = value.numerator * value.denominator, Fraction(1, value.denominator)
    for prime in _PRIMES:
        while inside and inside % prime**2 == 0:
            inside, outside = inside // prime**2, outside * prime
    root = math.isqrt(inside)
    if root * root == inside:
        return algebra.number(outside * root)
    return algebra.scaled(algebra.of_atom("sqrt", (((), inside),)), outside)


def _sigmoid(forms: NormalForms, p: Normal) -> Normal:
    """1 / (1 + exp(-p))."""
    if isinstance(p, float):
        return p if math.isnan(p) else forms.algebra.number(int(p > 0))
    algebra = forms.algebra
    bottom = algebra.sum((algebra.number(1), _exp(forms, algebra.scaled(p, -1))))  # type: ignore[arg-type]
    return algebra.inverse(bottom)


def _tanh(forms: NormalForms, p: Normal) -> Normal:
    """2 sigmoid(2 p) - 1."""
    algebra = forms.algebra
    half = _sigmoid(forms, 2 * p if isinstance(p, float) else algebra.scaled(p, 2))
    return half if isinstance(half, float) else algebra.difference(algebra.scaled(half, 2), algebra.number(1))


def _erf(forms: NormalForms, p: Normal) -> Normal:
    """An odd function."""
    algebra = forms.algebra
    if isinstance(p, float):
        return p if math.isnan(p) else algebra.number(1 if p > 0 else -1)
    if not p:
        return p
    sign = 1 if p[max(p)] > 0 else -1
    return algebra.scaled(algebra.of_atom("apply", "erf", (key_of(algebra.scaled(p, sign)),)), sign)


FUNCTIONS: dict[str, Callable[..., Normal]] = {
    "exp": _exp, "log": _log, "sqrt": _sqrt, "sigmoid": _sigmoid, "tanh": _tanh, "erf": _erf,
}  # fmt: skip
"""Functions with an algebra; of all others nothing is known but that equal arguments give equal values."""


# --- one region of values: which polynomials are taken to be above, at or below zero there ----------------------------


ANY = frozenset((-1, 0, 1))
ABOVE, AT, BELOW = frozenset((1,)), frozenset((0,)), frozenset((-1,))


class Fork(Exception):
    """A formula depends on whether the polynomial of `key` has one of these `signs`, which its path does not say."""

    def __init__(self, key: Key, signs: frozenset[int]) -> None:
        super().__init__("a condition on values")
        self.key, self.signs = key, signs


@dataclass(frozen=True)
class ValuePath:
    """The signs that polynomials may have, by key, and the variables (by atom) that an equation replaces."""

    signs: dict[Key, frozenset[int]] = field(default_factory=dict)
    replaced: dict[int, Polynomial] = field(default_factory=dict)

    def forked(self, fork: Fork, algebra: Algebra) -> Iterator[ValuePath]:
        """This path in two: where the answer is yes, and where it is no."""
        known = self.signs.get(fork.key, ANY)
        for signs in (known & fork.signs, known - fork.signs):
            if signs:
                path = replace(self, signs=self.signs | {fork.key: signs})
                yield path.solved(fork.key, algebra) if signs == AT else path

    def solved(self, key: Key, algebra: Algebra) -> ValuePath:
        """The path with the equation solved for a variable, where it is linear in one that occurs nowhere else."""
        equation = dict(key)
        for monomial, coefficient in key:
            if len(monomial) == 1 and monomial[0][1] == 1 and algebra.atoms[monomial[0][0]][0] == "variable":
                rest = {m: c for m, c in equation.items() if m != monomial}
                atom = monomial[0][0]
                if atom not in algebra.inside(rest) and not algebra.modulus:
                    return replace(self, replaced=self.replaced | {atom: algebra.scaled(rest, -1 / coefficient)})
        return self


def oriented(p: Polynomial, algebra: Algebra) -> tuple[Key, int]:
    """The key of p divided by a number and by what is above zero for all values, and the sign of that number."""
    content, rest = algebra.parts(p)
    ((monomial, lead),) = content.items()
    kept = tuple((a, e) for a, e in monomial if not _is_positive(algebra.atoms[a]))
    return key_of(algebra.product({kept: 1}, rest)), 1 if lead > 0 else -1


def _is_positive(what: tuple[Any, ...]) -> bool:
    return what[0] in ("exp", "constant")


def sign_of(p: Polynomial, algebra: Algebra) -> int | None:
    """The sign that p has for all values; None where that is not known."""
    if not p:
        return 0
    sizes = [_size(monomial, algebra) for monomial in p]
    if None not in sizes:
        terms = [float(c) * size for c, size in zip(p.values(), sizes, strict=True)]  # type: ignore[operator]
        return None if abs(sum(terms)) < 1e-9 * sum(map(abs, terms)) else 1 if sum(terms) > 0 else -1
    bounds = [_bound(monomial, coefficient, algebra) for monomial, coefficient in p.items()]
    if None in bounds or len({bound > 0 for bound in bounds if bound}) > 1 or all(abs(b or 0) < 2 for b in bounds):
        return None
    return 1 if bounds[0] > 0 else -1  # type: ignore[operator]


def _size(monomial: Any, algebra: Algebra) -> float | None:
    """The value of a product of constants; None where there is something else in it."""
    result = 1.0
    for atom, exponent in monomial:
        what = algebra.atoms[atom]
        if what[0] == "constant":
            result *= CONSTANTS[what[1]] ** float(exponent)
        elif what[0] == "sqrt" and set(dict(what[1])) == {()}:
            result *= math.sqrt(dict(what[1])[()])
        else:
            return None
    return result


def _bound(monomial: Any, coefficient: Any, algebra: Algebra) -> int | None:
    """2 where a term is above 0, 1 where it is not below, negative where it is the other way round."""
    strict = all(_is_positive(algebra.atoms[a]) for a, _ in monomial)
    if not strict and not all(
        _is_positive(algebra.atoms[a]) or (e == int(e) and e % 2 == 0 and e > 0) for a, e in monomial
    ):
        return None
    return (2 if strict else 1) * (1 if coefficient > 0 else -1)
