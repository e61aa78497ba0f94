"""A claim as text for the solver (SMT-LIB), with what is true of each operation in it."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import permutations
from typing import Any

from gradekit.prove.terms import TRUE, Atom, Monomial, Term, Truth, atoms, both, equal, of_atom
from gradekit.prove.value_of import Undefined, value_of

BITS = 64
"""Powers of two up to two to this one are told apart."""


class Query:
    """A claim as text in SMT-LIB, satisfiable where the claim can hold."""

    def __init__(self, claim: Truth) -> None:
        self.claim = claim
        self.facts = [fact for atom in atoms(claim).values() for fact in _meaning(atom)]
        self.powers = {atom.key: atom for atom in atoms(claim).values() if atom.op == "power"}
        self.atoms = atoms(claim, *self.facts)
        self.facts += [*_same_reads(self.atoms), *_ordered_quotients(self.atoms, self.conditions)]
        self.names = {key: f"v{number}" for number, key in enumerate(self.atoms)}
        self.products: dict[Monomial, str] = {}

    @property
    def is_linear(self) -> bool:
        """Whether no two variables are multiplied, in the claim or in its facts."""
        compared = (one for one in _leaves([self.claim, *self.facts]) if one.op != "free")
        return all(len(mono) < 2 for one in compared for mono in one.args[0].parts)

    def named(self, values: Mapping[str, Any]) -> dict[str, int]:
        """The model's values by the keys of the atoms."""
        found = {key: values.get(name, _any(self.atoms[key])) for key, name in self.names.items()}
        return found | {name[5:]: value for name, value in values.items() if name.startswith("free_")}

    @property
    def conditions(self) -> list[Truth]:
        """What holds if the claim does, each alone."""
        return [*(self.claim.args if self.claim.op == "and" else [self.claim]), *self.facts]

    def values(self, found: Mapping[str, Any]) -> Values:
        """The numbers that a model of the linear question gives."""
        return Values(
            self.named(found), {mono: int(found[name]) for mono, name in self.products.items() if name in found}
        )

    def more(self, *terms: Term) -> str:
        """What tells the solver of the linear question that terms are not negative."""
        before = len(self.products)
        asserts = [f"(assert (>= {self._term(term)} 0))" for term in terms]
        new = list(self.products.items())[before:]
        declared = [f"(declare-const {name} Int)" for _, name in new]
        return "\n".join([*declared, *(bound for mono, name in new for bound in _product_bounds(mono, name)), *asserts])

    def powers_missed(self, values: Mapping[str, Any]) -> str:
        """What tells the solver which numbers the powers are that are others in its answer; "" where none is."""
        named = self.named(values)
        missed = [atom for atom in self.powers.values() if not _is_power(atom, named)]
        self.powers = {key: atom for key, atom in self.powers.items() if atom not in missed}
        return "\n".join(f"(assert {self._truth(_power(of_atom(atom), atom.args[0]))})" for atom in missed)

    def text(self, linear: bool) -> str:
        """The question; `linear`: with a variable for each product."""
        self.products = {}
        self.linear = linear
        conditions = [self.claim, *self.facts, *(() if linear else self._exact_powers())]
        asserts = [f"(assert {self._truth(condition)})" for condition in conditions]
        bounds = [bound for key, atom in self.atoms.items() for bound in _bounds(self.names[key], atom)]
        bounds += [bound for mono, name in self.products.items() for bound in _product_bounds(mono, name)]
        free = dict.fromkeys(one.args[0] for one in _leaves([self.claim, *self.facts]) if one.op == "free")
        declared = [f"(declare-const {name} Int)" for name in [*self.names.values(), *self.products.values()]]
        declared += [f"(declare-const |free_{name}| Bool)" for name in free]
        return "\n".join([*declared, *bounds, *asserts])

    def _exact_powers(self) -> Iterator[Truth]:
        return (_power(of_atom(atom), atom.args[0]) for atom in self.atoms.values() if atom.op == "power")

    def _truth(self, value: Truth) -> str:
        match value.op:
            case "true" | "false":
                return value.op
            case "le":
                return f"(<= {self._term(value.args[0])} 0)"
            case "eq":
                return f"(= {self._term(value.args[0])} 0)"
            case "free":
                return f"|free_{value.args[0]}|"
        inner = " ".join(map(self._truth, value.args))
        return f"({value.op} {inner})"

    def _term(self, value: Term) -> str:
        pieces = [self._product(mono, factor) for mono, factor in value.parts.items()]
        return f"(+ {' '.join(pieces)})" if len(pieces) > 1 else pieces[0] if pieces else "0"

    def _product(self, mono: Monomial, factor: int) -> str:
        number = str(factor) if factor >= 0 else f"(- {-factor})"
        if not mono:
            return number
        if len(mono) > 1 and self.linear:
            inner = self.products.setdefault(mono, f"p{len(self.products)}")
        elif len(mono) > 1:
            inner = f"(* {' '.join(self.names[atom.key] for atom in mono)})"
        else:
            inner = self.names[mono[0].key]
        return inner if factor == 1 else f"(* {number} {inner})"


def _any(atom: Atom) -> int:
    low, high = atom.range
    return low if low is not None else min(high, 0) if high is not None else 0


def _bounds(name: str, atom: Atom) -> Iterator[str]:
    if atom.op in ("var", "read", "choose"):  # the others' ranges hold under a condition, which `_meaning` says
        yield from _bounded(name, atom.range)


def _bounded(name: str, range: tuple[int | None, int | None]) -> Iterator[str]:
    low, high = range
    if low is not None:
        yield f"(assert (>= {name} {low if low >= 0 else f'(- {-low})'}))"
    if high is not None:
        yield f"(assert (<= {name} {high if high >= 0 else f'(- {-high})'}))"


def _product_bounds(mono: Monomial, name: str) -> Iterator[str]:
    if all(map(is_sure, mono)):
        yield from _bounded(name, Term({mono: 1}).range)


def _meaning(atom: Atom) -> Iterator[Truth]:
    value = of_atom(atom)
    if atom.op in ("div", "mod"):
        a, b = atom.args
        quotient = value if atom.op == "div" else of_atom(Atom("div", (a, b)))
        rest = a - quotient * b
        facts = [Truth("le", (-rest,)), Truth("le", (rest - b + 1,))]
        facts += [Truth("eq", (value - rest,))] if atom.op == "mod" else []
        facts += [Truth("le", (-value,))] if a.range[0] is not None and a.range[0] >= 0 else []
        valid = b.range[0] is not None and b.range[0] > 0
        yield from facts if valid else [_implied(Truth("le", (1 - b,)), fact) for fact in facts]
    elif atom.op == "choose":
        condition, yes, no = atom.args
        yield _implied(condition, Truth("eq", (value - yes,)))
        yield _implied(~condition, Truth("eq", (value - no,)))
        for sign in (1, -1):  # of the smaller or the greater of two, so much is known at once
            if condition == (sign * yes <= sign * no):
                yield from (Truth("le", ((value - side) * sign,)) for side in (yes, no))
    elif atom.op == "power":  # little of what is known; `powers_missed` says the rest where it matters
        a = atom.args[0]
        yield from (a <= value, value >= 0)
        yield _implied(a <= 0, value <= 0)
        yield _implied(equal(a, 1), value <= 1)
        yield _implied(a >= 2, value <= 2 * a - 2)


def _is_power(atom: Atom, values: Mapping[str, int]) -> bool:
    """Whether the solver's answer gives a power the number that it is."""
    try:
        return value_of(of_atom(atom), values) == values[atom.key]
    except Undefined:
        return False


@lru_cache(256)  # many questions ask about the same powers
def _power(value: Term, a: Term) -> Truth:
    cases = [both(Truth("eq", (value,)), Truth("le", (a,))), both(Truth("eq", (value - 1,)), Truth("eq", (a - 1,)))]
    for bit in range(1, BITS):
        cases.append(both(Truth("eq", (value - (1 << bit),)), Truth("le", (a - (1 << bit),)),
                          Truth("le", ((1 << (bit - 1)) + 1 - a,))))  # fmt: skip
    return Truth("or", tuple(cases))


def _implied(condition: Truth, fact: Truth) -> Truth:
    return fact if condition.op == "true" else TRUE if condition.op == "false" else Truth("=>", (condition, fact))


def _same_reads(found: Mapping[str, Atom]) -> list[Truth]:
    reads = [atom for atom in found.values() if atom.op == "read" and len(atom.args) == 2]
    return [
        _implied(Truth("eq", (a.args[1] - b.args[1],)), Truth("eq", (of_atom(a) - of_atom(b),)))
        for position, a in enumerate(reads)
        for b in reads[:position]
        if a.args[0] == b.args[0]
    ]


def _ordered_quotients(found: Mapping[str, Atom], conditions: Sequence[Truth]) -> Iterator[Truth]:
    """From a + k * b <= c follows a // b + k <= c // b: an element below a size lies in a tile below their number."""
    known = {condition.args[0].key for condition in conditions if condition.op == "le"}
    quotients = [atom for atom in found.values() if atom.op == "div" and (atom.args[1].range[0] or 0) > 0]
    for one, other in permutations(quotients, 2):
        if one.args[1] == other.args[1]:
            gap = one.args[0] - other.args[0]
            steps = [k for k in (1, 0) if (gap + one.args[1] * k).key in known]
            yield from (Truth("le", (of_atom(one) - of_atom(other) + k,)) for k in steps[:1])


def _leaves(conditions: Sequence[Truth]) -> Iterator[Truth]:
    """The comparisons, and what nobody knows, of which conditions are made."""
    for condition in conditions:
        if condition.op in ("le", "eq", "free"):
            yield condition
        else:
            yield from _leaves(condition.args)


# --- products of variables without nonlinear arithmetic ---------------------------------------------------------------
#
# Each product is a variable of its own. A product m = x * rest is monotonic in x where `rest` is not negative: from x
# < y follows (y - x - 1) * rest >= 0, and from any condition c <= 0 follows c * rest <= 0. There are too many of
# these to say all. So the solver is asked without them, and where its answer contradicts some, those are added, until
# it has no answer left, or one that contradicts none.

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
