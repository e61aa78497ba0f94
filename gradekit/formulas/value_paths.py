"""One region of values: which polynomials are taken to be above, at or below zero there."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from gradekit.formulas.algebra import Algebra, Key, Polynomial, key_of

ANY = frozenset((-1, 0, 1))
ABOVE, AT, BELOW = frozenset((1,)), frozenset((0,)), frozenset((-1,))
CONSTANTS = {"pi": math.pi, "ln2": math.log(2), "ln10": math.log(10), "e": math.e}


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
