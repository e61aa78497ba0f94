"""Products of variables without nonlinear arithmetic: each is a variable of its own,
about which facts are added as needed.

A product m = x * rest is monotonic in x where `rest` is not negative: from x < y follows (y - x - 1) * rest >= 0, and
from any condition c <= 0 follows c * rest <= 0. There are too many of these to say all. So the solver is asked without
them, and where its answer contradicts some, those are added, until it has no answer left, or one that contradicts none.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from gradekit.prove.terms import Atom, Monomial, Term, Truth

MOST_PARTS = 12
"""Conditions of more parts are not multiplied."""

MOST_NEW = 1
"""Products of which nobody asks and that a fact may bring in: each asks for further facts."""

MOST_DEGREE = 5
"""Products of more factors are left alone."""


@dataclass(frozen=True)
class Lemma:
    """`fact` >= 0, which holds if `premise` >= 0 does (None: it holds). `x` and `y` are compared by the premise."""

    fact: Term
    premise: Term | None = None
    x: Monomial = ()
    y: Monomial = ()


class Lemmas:
    """What is known of the `products` of a question, of which the `conditions` hold; `positive` are atoms that are not
    negative where these do."""

    def __init__(self, products: Sequence[Monomial], conditions: Sequence[Truth], positive: frozenset[Atom]) -> None:
        self._asked, self._positive = frozenset(products), positive
        self._lefts: dict[Monomial, dict[Monomial, None]] = defaultdict(dict)
        for product in products:
            for rest, left in _splits(product) if len(product) <= MOST_DEGREE else ():
                if self._all_positive(rest):
                    self._lefts[rest][left] = None
        self.certain = [*self._ranges(), *self._multiplied(conditions)]

    @cached_property
    def conditional(self) -> list[Lemma]:
        """Those that have a premise: there are many, and often none is asked for."""
        return [*self._compared()]

    def _all_positive(self, product: Monomial) -> bool:
        return all(never_negative(atom) or atom in self._positive for atom in product)

    def violated(self, lemmas: Sequence[Lemma], values: Values) -> Iterator[Lemma]:
        """Those that the solver's answer contradicts, whose premise it agrees with."""
        for lemma in lemmas:
            if values.of(lemma.fact) < 0 and (lemma.premise is None or values.of(lemma.premise) >= 0):
                yield lemma

    def beside(self, lemma: Lemma) -> Iterator[Term]:
        """What is not negative if the premise does not hold: the same, the other way
        round, for each product of both."""
        assert lemma.premise is not None
        turned = -lemma.premise - 1
        for rest, lefts in self._lefts.items():
            if rest and lemma.x in lefts and lemma.y in lefts:
                yield turned * Term({rest: 1})
        divisor = lemma.x[0].args[1] if lemma.x[0].op in ("div", "mod") else None
        if divisor is not None and len(divisor.parts) == 1:
            (by,) = divisor.parts
            if by and self._all_positive(by):
                yield turned * Term({by: 1})

    def _ranges(self) -> Iterator[Lemma]:
        """A factor is no less and no more than its range says."""
        for rest, lefts in self._lefts.items():
            for left in lefts:
                if len(left) == 1 and rest and is_sure(left[0]):
                    low, high = left[0].range
                    number, scale = Term({left: 1}), Term({rest: 1})
                    yield from (Lemma((number - low) * scale) for _ in (0,) if low is not None)
                    yield from (Lemma((-number + high) * scale) for _ in (0,) if high is not None)

    def _multiplied(self, conditions: Sequence[Truth]) -> Iterator[Lemma]:
        """Conditions times what is not negative, where they have a part whose product with that is asked about."""
        scales: dict[Monomial, dict[Monomial, None]] = defaultdict(dict)
        for rest, lefts in self._lefts.items():
            for left in lefts if rest else ():
                scales[left][rest] = None
        for condition in conditions:
            parts = condition.args[0].parts if condition.op in ("le", "eq") else ()
            if 1 < len(parts) <= MOST_PARTS:
                for scale in dict.fromkeys(scale for part in parts for scale in scales.get(part, ())):
                    yield from self._few_new(Lemma(-condition.args[0] * Term({scale: 1})))
                    if condition.op == "eq":
                        yield from self._few_new(Lemma(condition.args[0] * Term({scale: 1})))

    def _few_new(self, lemma: Lemma) -> Iterator[Lemma]:
        new = {mono for mono in lemma.fact.parts if len(mono) > 1} - self._asked
        if len(new) <= MOST_NEW:
            yield lemma

    def _compared(self) -> Iterator[Lemma]:
        """Of two products with a factor in common, the greater is the one whose other factor is."""
        for rest, lefts in self._lefts.items():
            for x, y in itertools.permutations(lefts, 2) if rest else ():
                if len(x) == 1:
                    gap = Term({y: 1, x: -1})
                    for premise in (gap - 1, gap, -gap):
                        yield Lemma(premise * Term({rest: 1}), premise, x, y)


def _splits(product: Monomial) -> Iterator[tuple[Monomial, Monomial]]:
    """Each (rest, left) with rest * left = product, and a left."""
    for count in range(1, len(product)):
        for places in itertools.combinations(range(len(product)), count):
            rest = tuple(product[place] for place in places)
            yield rest, tuple(atom for place, atom in enumerate(product) if place not in places)


def is_sure(atom: Atom) -> bool:
    """Whether the atom's range is that of its value whatever is assumed: no divisor can be zero."""
    if atom.op in ("var", "read"):
        return True
    terms = [part for part in atom.args if isinstance(part, Term)]
    if atom.op in ("div", "mod") and (terms[1].range[0] or 0) < 1:
        return False
    return all(is_sure(inner) for one in terms for mono in one.parts for inner in mono)


def never_negative(atom: Atom) -> bool:
    """Whether the atom's value cannot be negative, whatever is assumed."""
    return (atom.range[0] if atom.range[0] is not None else -1) >= 0 and is_sure(atom)


class Values:
    """The numbers that an answer of the solver gives to `atoms`, by their keys, and to `products`."""

    def __init__(self, atoms: Mapping[str, int], products: Mapping[Monomial, int]) -> None:
        self._atoms, self._products = atoms, dict(products)

    def of(self, term: Term) -> int:
        """The term's number, with products as the answer has them."""
        return sum(factor * self._product(mono) for mono, factor in term.parts.items())

    def _product(self, mono: Monomial) -> int:
        if mono not in self._products:
            number = 1
            for atom in mono:
                number *= self._atoms[atom.key]
            self._products[mono] = number
        return self._products[mono]
