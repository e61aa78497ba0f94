"""Products of variables without nonlinear arithmetic: each is a variable of its own, about which facts are added as needed.

A product m = x * rest is monotonic in x where `rest` is not negative: from x < y follows (y - x - 1) * rest >= 0, and from
any condition c <= 0 follows c * rest <= 0. There are too many of these to say all. So the solver is asked without them,
and where its answer contradicts some, those are added, until it has no answer left, or one that contradicts none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gradekit.prove.division import without
from gradekit.prove.terms import Atom, Monomial, Term, Truth

MOST_PARTS = 12
"""Conditions of more parts are not multiplied."""

MOST_NEW = 1
"""Products of which nobody asks and that a fact may bring in: each asks for further facts."""


@dataclass(frozen=True)
class Lemma:
    """`fact` >= 0, which holds if `premise` >= 0 does (None: it holds); `beside` follows from premise < 0."""

    fact: Term
    premise: Term | None = None
    beside: tuple[Term, ...] = ()


def violated(products: Sequence[Monomial], conditions: Sequence[Truth], value: Callable[[Term], int]) -> Iterator[Lemma]:
    """The lemmas about the question's products that the solver's answer contradicts; `value` is what that gives a term."""
    asked = set(products)
    for lemma in (*_each(products, value), *_multiplied(products, conditions)):
        if len({mono for mono in lemma.fact.parts if len(mono) > 1} - asked) <= MOST_NEW and value(lemma.fact) < 0:
            yield lemma


def _each(products: Sequence[Monomial], value: Callable[[Term], int]) -> Iterator[Lemma]:
    for mono in products:
        for position, factor in enumerate(mono):
            rest = mono[:position] + mono[position + 1 :]
            if factor not in mono[:position] and all(map(_never_negative, rest)):
                yield from _about(factor, rest, products, value)


def _about(x: Atom, rest: Monomial, products: Sequence[Monomial], value: Callable[[Term], int]) -> Iterator[Lemma]:
    """What a product of `x` and `rest` is no less and no greater than."""
    scale, number = Term({rest: 1}), Term({(x,): 1})
    if is_sure(x):
        low, high = x.range
        yield from (Lemma((number - low) * scale) for _ in (0,) if low is not None)
        yield from (Lemma((-number + high) * scale) for _ in (0,) if high is not None)
    for other in products:
        left = without(other, rest)
        if not left or left == (x,):
            continue
        y = Term({left: 1})
        for gap in (y - number - 1, y - number, number - y):
            if value(gap) >= 0:  # else it does not follow from what the answer agrees with
                yield Lemma(gap * scale, gap, tuple(_beside(x, left, gap, products)))


def _beside(x: Atom, y: Monomial, gap: Term, products: Sequence[Monomial]) -> Iterator[Term]:
    """What is not negative where the gap between x and y is: the same, the other way round, for each product of theirs."""
    turned = -gap - 1
    rests = {without(mono, (x,)) for mono in products} & {without(mono, y) for mono in products}
    divisor = x.args[1] if x.op in ("div", "mod") else None
    if divisor is not None and len(divisor.parts) == 1:
        rests.add(next(iter(divisor.parts)))
    for rest in sorted((r for r in rests if r), key=lambda mono: [atom.key for atom in mono]):
        if all(map(_never_negative, rest)):
            yield turned * Term({rest: 1})


def _multiplied(products: Sequence[Monomial], conditions: Sequence[Truth]) -> Iterator[Lemma]:
    """Conditions times what is not negative, where they have a part whose product with that is asked about."""
    seen: set[str] = set()
    short = [c for c in conditions if c.op == "le" and 1 < len(c.args[0].parts) <= MOST_PARTS]
    for mono in products:
        for position in range(len(mono)):
            factor, rest = mono[position : position + 1], mono[:position] + mono[position + 1 :]
            for scale, part in ((factor, rest), (rest, factor)):
                if not all(map(_never_negative, scale)):
                    continue
                for condition in short:
                    if part not in condition.args[0].parts:
                        continue
                    fact = -condition.args[0] * Term({scale: 1})
                    if fact.key not in seen:
                        seen.add(fact.key)
                        yield Lemma(fact)


def is_sure(atom: Atom) -> bool:
    """Whether the atom's range is that of its value whatever is assumed: no divisor can be zero."""
    if atom.op in ("var", "read"):
        return True
    terms = [part for part in atom.args if isinstance(part, Term)]
    if atom.op in ("div", "mod") and (terms[1].range[0] or 0) < 1:
        return False
    return all(is_sure(inner) for one in terms for mono in one.parts for inner in mono)


def _never_negative(atom: Atom) -> bool:
    return (atom.range[0] if atom.range[0] is not None else -1) >= 0 and is_sure(atom)


def valued(term: Term, atoms: Mapping[str, int], products: Mapping[Monomial, int]) -> int:
    """The number that an answer gives a term, with products as it has them."""
    total = 0
    for mono, factor in term.parts.items():
        known = products.get(mono)
        if known is None:
            known = 1
            for atom in mono:
                known *= atoms[atom.key]
        total += factor * known
    return total


