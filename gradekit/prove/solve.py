"""Questions to the solver: does a goal follow from hypotheses, for all integers?

First every product of variables is taken for a number of which nothing is known but a few consequences of the
hypotheses: what follows then, follows, and linear arithmetic decides it in a millisecond. Only what does not is asked
with products as they are. Limits are counted in the solver's own steps, which are the same on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import z3

from gradekit.prove.linearized import Lemma, Lemmas, Values, is_sure, never_negative
from gradekit.prove.parts import atoms
from gradekit.prove.terms import FALSE, TRUE, Atom, Monomial, Term, Truth, at_most, both, negated, of_atom
from gradekit.prove.value_of import Undefined, truth_of

LINEAR_STEPS = 400_000
STEPS = 300_000
LEMMA_STEPS = 40_000
"""What the solver may take for one question: about a tenth of a second, or for a lemma a hundredth."""

ROUNDS = 12
MOST_ADDED = 12
MOST_TRIED = 24
MOST_FOLLOWING = 4
"""How often facts about products are added, how many each time, and how many are tried that hold if something else does."""

MOST_STEPS = 200_000_000
"""What all questions of one solver may take together, where nobody says less."""

SMALL = (8, 200, 5000, 100_000, 1 << 21)
"""Counterexamples are looked for among sizes up to these, one after the other."""

MOST_LEMMAS = 120
BITS = 64
"""Powers of two up to two to this one are told apart."""


@dataclass(frozen=True)
class Answer:
    """`verdict` is "proved", "refuted" (then `values` are such that hypotheses hold and the goal does not) or "open"."""

    verdict: str
    values: Mapping[str, int] = field(default_factory=dict)


PROVED, OPEN = Answer("proved"), Answer("open")


class Solver:
    """Answers questions, equal ones once; `steps` counts what they took, `asked` how many were not known.

    Counterexamples have `sizes` that are small, where that can be. Once `limit` steps are used up, everything that is not known yet is open.
    """

    def __init__(self, limit: int = MOST_STEPS) -> None:
        self._context = z3.Context()
        self._known: dict[str, Answer] = {}
        self.limit = limit
        self.sizes: Sequence[Term] = ()
        self.steps = self.asked = 0

    def ask(self, hypotheses: Sequence[Truth], goal: Truth, linear_only: bool = False) -> Answer:
        """Whether the goal follows from the hypotheses: each part of it, from those about the same variables or from all."""
        if goal.op == "and":
            answers = (self.ask(hypotheses, part, linear_only) for part in goal.args)
            return next((answer for answer in answers if answer.verdict != "proved"), PROVED)
        answer = self._decided(hypotheses, goal, linear_only)
        return self._smaller(hypotheses, goal, answer) if answer.verdict == "refuted" and self.sizes else answer

    def ask_once(self, hypotheses: Sequence[Truth], goal: Truth) -> Answer:
        """The same by linear arithmetic alone, and without a search for small sizes."""
        return self._ask(hypotheses, goal, linear_only=True)

    def _decided(self, hypotheses: Sequence[Truth], goal: Truth, linear_only: bool) -> Answer:
        near = _near(hypotheses, goal)
        if len(near) < len(hypotheses) and self._ask(near, goal, linear_only=True).verdict == "proved":
            return PROVED
        return self._ask(hypotheses, goal, linear_only)

    def _smaller(self, hypotheses: Sequence[Truth], goal: Truth, found: Answer) -> Answer:
        """The same with smaller sizes, if there are such: what the engine can run, and a person imagine."""
        for bound in SMALL:
            bounds = [Truth("le", (size - bound,)) for size in self.sizes]
            answer = self._ask([*hypotheses, *bounds], goal, linear_only=False)
            if answer.verdict == "refuted":
                return answer
        return found

    def _ask(self, hypotheses: Sequence[Truth], goal: Truth, linear_only: bool) -> Answer:
        claim = both(*hypotheses, negated(goal))
        if claim.op == "false":
            return PROVED
        key = claim.key + str(linear_only)
        if key not in self._known:
            if self.steps > self.limit:
                return OPEN
            self._known[key] = self._answer(claim, linear_only)
        return self._known[key]

    def follows(self, hypotheses: Sequence[Truth], goal: Truth) -> bool:
        """Whether linear arithmetic shows that the goal follows."""
        return goal.op == "true" or self.ask(hypotheses, goal, linear_only=True).verdict == "proved"

    def example(self, *conditions: Truth) -> Answer:
        """ "refuted", with values for which all conditions hold; "proved" where there are none."""
        return self.ask(conditions, FALSE)

    def _answer(self, claim: Truth, linear_only: bool) -> Answer:
        self.asked += 1
        question = Query(claim)
        found = self._linear(question)
        if found is not OPEN or linear_only or question.is_linear:
            return found
        found = self._run(question.text(linear=False), STEPS)
        if found is z3.unsat:
            return PROVED
        return _refuted(question, found) if isinstance(found, dict) else OPEN

    def _linear(self, question: Query) -> Answer:
        """By linear arithmetic, to which facts about products are added until they suffice, or no more are known."""
        solver = self._solver(question.text(linear=True))
        lemmas, tried = None, dict[str, bool]()
        for _ in range(ROUNDS):
            found = self._check(solver, LINEAR_STEPS)
            if found is z3.unsat:
                return PROVED
            if found is z3.unknown:
                return OPEN
            model = _model(solver)
            answer = _refuted(question, model)
            if answer.verdict == "refuted" or question.is_linear:
                return answer
            lemmas = lemmas or Lemmas([*question.products], question.conditions, self._positive(solver, question))
            added = self._wanted(solver, question, lemmas, question.values(model), tried)
            if not added:
                return OPEN
            for lemma in added:
                question.more(solver, lemma.fact)
        return OPEN

    def _positive(self, solver: Any, question: Query) -> frozenset[Atom]:
        """The factors that the solver shows not to be negative, where their ranges do not."""
        doubtful = {atom: None for mono in question.products for atom in mono if not never_negative(atom)}
        return frozenset(atom for atom in doubtful if self._shows(solver, question, of_atom(atom)))

    def _shows(self, solver: Any, question: Query, value: Term, *beside: Term) -> bool:
        """Whether the value is not negative; `beside` are not if it is."""
        solver.push()
        question.more(solver, -value - 1, *beside)
        found = self._check(solver, LEMMA_STEPS) is z3.unsat
        solver.pop()
        return found

    def _wanted(self, solver: Any, question: Query, lemmas: Lemmas, values: Values, tried: dict[str, bool]) -> list[Lemma]:
        """Facts that the solver's answer contradicts: those that hold, or if there are none, some that follow."""
        certain = [*islice(lemmas.violated(lemmas.certain, values), MOST_ADDED)]
        if certain:
            return certain
        candidates = lemmas.violated(lemmas.conditional, values)
        return [*islice((c for c in candidates if self._follows(solver, question, lemmas, c, tried)), MOST_FOLLOWING)]

    def _follows(self, solver: Any, question: Query, lemmas: Lemmas, lemma: Lemma, tried: dict[str, bool]) -> bool:
        """Whether what a lemma takes for granted follows."""
        assert lemma.premise is not None
        key = lemma.premise.key
        if key not in tried:
            if len(tried) >= MOST_TRIED:
                return False
            tried[key] = self._shows(solver, question, lemma.premise, *lemmas.beside(lemma))
        return tried[key]

    def _run(self, text: str, steps: int) -> Any:
        """unsat, the values of a model, or unknown."""
        solver = self._solver(text)
        found = self._check(solver, steps)
        return _model(solver) if found is z3.sat else found

    def _solver(self, text: str) -> Any:
        solver = z3.SimpleSolver(ctx=self._context)
        solver.from_string(text)
        return solver

    def _check(self, solver: Any, steps: int) -> Any:
        solver.set("rlimit", steps)
        result = solver.check()
        self.steps = max(self.steps, _steps(solver))  # the context's own count, of all questions
        return z3.unsat if result == z3.unsat else z3.sat if result == z3.sat else z3.unknown


def _model(solver: Any) -> dict[str, Any]:
    """The values of the solver's answer by their names."""
    model = solver.model()
    return {str(name): _number(model[name]) for name in model.decls() if name.arity() == 0}


def _refuted(question: Query, found: Mapping[str, Any]) -> Answer:
    """A model, where it is one indeed: what was left out of the question may say no."""
    values = question.named(found)
    return Answer("refuted", values) if _holds(question.claim, values) else OPEN


def _near(hypotheses: Sequence[Truth], goal: Truth) -> list[Truth]:
    """The parts of the hypotheses that are about the goal's variables alone."""
    parts = [part for whole in hypotheses for part in (whole.args if whole.op == "and" else (whole,))]
    mine = {key for key, atom in atoms(goal).items() if atom.op in ("var", "read")}
    return [part for part in parts if all(a.op not in ("var", "read") or key in mine for key, a in atoms(part).items())]


def _steps(solver: Any) -> int:
    return next((int(count) for name, count in solver.statistics() if name == "rlimit count"), 0)


def _number(value: Any) -> int | bool:
    return value.as_long() if z3.is_int_value(value) else z3.is_true(value)


def _holds(claim: Truth, values: Mapping[str, int]) -> bool:
    """Whether a model is one indeed: what was left out of the question may say no."""
    try:
        return truth_of(claim, values)
    except Undefined:
        return False


class Query:
    """A claim as text in SMT-LIB, satisfiable where the claim can hold."""

    def __init__(self, claim: Truth) -> None:
        self.claim = claim
        self.facts = [fact for atom in atoms(claim).values() for fact in _meaning(atom)]
        self.atoms = atoms(claim, *self.facts)
        self.facts += _same_reads(self.atoms)
        self.names = {key: f"v{number}" for number, key in enumerate(self.atoms)}
        self.products: dict[Monomial, str] = {}
        self._made: dict[Monomial, Any] = {}  # as z3 has them

    @property
    def is_linear(self) -> bool:
        """Whether no two variables are multiplied, in the claim or in its facts."""
        return all(len(mono) < 2 for mono in _monomials([self.claim, *self.facts]))

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
        return Values(self.named(found), {mono: int(found[name]) for mono, name in self.products.items() if name in found})

    def more(self, solver: Any, *terms: Term) -> None:
        """Tells the solver of the linear question that terms are not negative."""
        for term in terms:
            pieces = [self._piece(solver, mono, factor) for mono, factor in term.parts.items()]
            solver.add(z3.Sum(*pieces) >= 0 if pieces else z3.BoolVal(True, solver.ctx))

    def _piece(self, solver: Any, mono: Monomial, factor: int) -> Any:
        if not mono:
            return z3.IntVal(factor, solver.ctx)
        made = self._made.get(mono)
        if made is not None:
            return factor * made
        name = self.names[mono[0].key] if len(mono) == 1 else self.products.get(mono)
        made = self._made[mono] = z3.Int(name or f"p{len(self.products)}", solver.ctx)
        if name is not None:
            return factor * made
        self.products[mono] = f"p{len(self.products)}"
        low, high = Term({mono: 1}).range if all(map(is_sure, mono)) else (None, None)
        solver.add(*([made >= low] if low is not None else []), *([made <= high] if high is not None else []))
        return factor * made

    def text(self, linear: bool) -> str:
        """The question; `linear`: with a variable for each product."""
        self.products = {}
        self.linear = linear
        conditions = [self.claim, *self.facts, *(_lemmas(self.claim, self.facts) if linear else ())]
        asserts = [f"(assert {self._truth(condition)})" for condition in conditions]
        bounds = [bound for key, atom in self.atoms.items() for bound in _bounds(self.names[key], atom)]
        bounds += [bound for mono, name in self.products.items() for bound in _product_bounds(mono, name)]
        free = dict.fromkeys(truth.args[0] for truth in _free([self.claim, *self.facts]))
        declared = [f"(declare-const {name} Int)" for name in [*self.names.values(), *self.products.values()]]
        declared += [f"(declare-const |free_{name}| Bool)" for name in free]
        return "\n".join([*declared, *bounds, *asserts])

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
    """What is true of the value of an operation."""
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
        yield _implied(negated(condition), Truth("eq", (value - no,)))
        for sign in (1, -1):  # of the smaller or the greater of two, so much is known at once
            if condition == at_most(sign * yes, sign * no):
                yield from (Truth("le", ((value - side) * sign,)) for side in (yes, no))
    elif atom.op == "power":
        yield _power(value, atom.args[0])


def _power(value: Term, a: Term) -> Truth:
    cases = [both(Truth("eq", (value,)), Truth("le", (a,))), both(Truth("eq", (value - 1,)), Truth("eq", (a - 1,)))]
    for bit in range(1, BITS):
        cases.append(both(Truth("eq", (value - (1 << bit),)), Truth("le", (a - (1 << bit),)),
                          Truth("le", ((1 << (bit - 1)) + 1 - a,))))  # fmt: skip
    return Truth("or", tuple(cases))


def _implied(condition: Truth, fact: Truth) -> Truth:
    return fact if condition.op == "true" else TRUE if condition.op == "false" else Truth("=>", (condition, fact))


def _same_reads(found: Mapping[str, Atom]) -> list[Truth]:
    """A tensor has one value at one place."""
    reads = [atom for atom in found.values() if atom.op == "read" and len(atom.args) == 2]
    return [
        _implied(Truth("eq", (a.args[1] - b.args[1],)), Truth("eq", (of_atom(a) - of_atom(b),)))
        for position, a in enumerate(reads)
        for b in reads[:position]
        if a.args[0] == b.args[0]
    ]


def _monomials(conditions: Sequence[Truth]) -> Iterator[Monomial]:
    for condition in conditions:
        if condition.op in ("le", "eq"):
            yield from condition.args[0].parts
        elif condition.op != "free":
            yield from _monomials(condition.args)


def _free(conditions: Sequence[Truth]) -> Iterator[Truth]:
    for condition in conditions:
        if condition.op == "free":
            yield condition
        elif condition.op not in ("le", "eq"):
            yield from _free(condition.args)


def _lemmas(claim: Truth, facts: Sequence[Truth]) -> list[Truth]:
    """Inequalities that hold, times what is not negative: those whose products the question has."""
    conditions = [*(claim.args if claim.op == "and" else [claim]), *facts]
    wanted = {mono for mono in _monomials(conditions) if len(mono) > 1}
    found: dict[str, Truth] = {}
    for mono in sorted(wanted, key=lambda mono: [atom.key for atom in mono]):
        for position, factor in enumerate(mono):
            if factor.op == "var" and (factor.range[0] or -1) >= 0 or factor.range[0] == 0 and factor.op == "var":
                found |= _multiplied(conditions, factor, mono[:position] + mono[position + 1 :])
        if len(found) > MOST_LEMMAS:
            break
    return list(found.values())[:MOST_LEMMAS]


def _multiplied(conditions: Sequence[Truth], factor: Atom, rest: Monomial) -> dict[str, Truth]:
    """The conditions in which the product `rest` stands alone, times `factor`; and those that say the range of `rest`."""
    found = {}
    scale = of_atom(factor)
    for condition in conditions:
        if condition.op in ("le", "eq") and rest in condition.args[0].parts and len(condition.args[0].parts) < 8:
            lemma = Truth(condition.op, (condition.args[0] * scale,))
            found[lemma.key] = lemma
    if len(rest) == 1 and rest[0].op == "var":
        low, high = rest[0].range
        ends = [term for end, term in ((low, _over(low, rest)), (high, -_over(high, rest))) if end is not None]
        found |= {lemma.key: lemma for lemma in (Truth("le", (end * scale,)) for end in ends)}
    return found


def _over(end: int | None, rest: Monomial) -> Term:
    """end - rest"""
    return -Term({rest: 1}) + (end or 0)
