"""Questions to the solver: does a goal follow from hypotheses, for all integers?

First every product of variables is taken for a number of which nothing is known but a few consequences of the
hypotheses: what follows then, follows, and linear arithmetic decides it in a millisecond. Only what does not is asked
with products as they are. Limits are counted in the solver's own steps, which are the same on every machine.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import islice, permutations
from typing import Any

import z3

from gradekit.prove.terms import (
    FALSE,
    TRUE,
    Atom,
    Monomial,
    Substitution,
    Term,
    Truth,
    alone,
    atoms,
    both,
    equal,
    of_atom,
    parts_of,
)
from gradekit.prove.value_of import Undefined, truth_of, value_of
from gradekit.reuse import SharedCache, shared

STEPS, FEW_STEPS = 400_000, 30_000
"""What the solver may take for one question: about a tenth of a second, or for a lemma a hundredth."""

MOST_STEPS = 15_000_000
"""What all questions of one solver may take together, where nobody says less."""

ROUNDS = 12
"""How often facts about products are added, so many each time."""

MOST_TRIED = 24
"""Facts that hold if something else does and that are tried for one question, and counterexamples that are kept, to be
tried on later ones."""

SMALL = (8, 200, 5000, 100_000, 1 << 21)
"""Counterexamples are looked for among sizes up to these, one after the other."""


@dataclass(frozen=True)
class Answer:
    """`verdict` is "proved", "refuted" (then `values` are such that hypotheses hold
    and the goal does not) or "open"."""

    verdict: str
    values: Mapping[str, int] = field(default_factory=dict)


PROVED, OPEN = Answer("proved"), Answer("open")


_answers: SharedCache[bytes, tuple[Answer, int]] = shared(1 << 14)
"""By all that a solver was asked until then: the answer, and the steps that it had taken."""


class Solver:
    """Answers questions, equal ones once; `steps` counts what they took, `asked` how many were not known.

    Counterexamples have `sizes` that are small, where that can be. Once `limit` steps are used up,
    everything that is not known yet is open.
    """

    def __init__(self, limit: int = MOST_STEPS) -> None:
        self._known: dict[str, Answer] = {}
        self._asked = b""  # a digest of all questions so far
        self._unasked = list[tuple[Truth, bool]]()  # those since z3 was asked last, whose answers were remembered
        self._models: deque[Mapping[str, int]] = deque(maxlen=MOST_TRIED)  # of questions that were refuted
        self.limit = limit
        self.sizes: Sequence[Term] = ()
        self.steps = self.asked = 0

    def ask(self, hypotheses: Sequence[Truth], goal: Truth, linear_only: bool = False) -> Answer:
        """Whether the goal follows from the hypotheses: each part of it, from those about
        the same variables or from all."""
        parts = [*alone(goal)]
        if len(parts) > 1:
            answers = (self.ask(hypotheses, part, linear_only) for part in parts)
            return next((answer for answer in answers if answer.verdict != "proved"), PROVED)
        answer = self._decided(hypotheses, goal, linear_only)
        return self._smaller(hypotheses, goal, answer) if answer.verdict == "refuted" and self.sizes else answer

    def _decided(self, hypotheses: Sequence[Truth], goal: Truth, linear_only: bool) -> Answer:
        near = _near(hypotheses, goal)
        if len(near) < len(hypotheses) and self.ask_once(near, goal, linear_only=True).verdict == "proved":
            return PROVED
        return self.ask_once(hypotheses, goal, linear_only)

    def _smaller(self, hypotheses: Sequence[Truth], goal: Truth, found: Answer) -> Answer:
        """The same with smaller sizes, if there are such: what the engine can run, and a person imagine."""
        for bound in SMALL:
            bounds = [Truth("le", (size - bound,)) for size in self.sizes]
            answer = self.ask_once([*hypotheses, *bounds], goal, linear_only=False)
            if answer.verdict == "refuted":
                return answer
        return found

    def ask_once(self, hypotheses: Sequence[Truth], goal: Truth, linear_only: bool = True) -> Answer:
        """The same as a whole, without a search for small sizes."""
        claim = both(*hypotheses, ~goal)
        if claim.op == "false":
            return PROVED
        key = claim.key + str(linear_only)
        if key not in self._known:
            if self.steps > self.limit:
                return OPEN
            self._known[key] = answer = self._answer(claim, linear_only)
            if answer.values:
                self._models.append(answer.values)
        return self._known[key]

    def follows(self, hypotheses: Sequence[Truth], goal: Truth) -> bool:
        """Whether linear arithmetic shows that the goal follows."""
        return goal.op == "true" or all(self._follows_alone(hypotheses, part) for part in alone(goal))

    def _follows_alone(self, hypotheses: Sequence[Truth], goal: Truth) -> bool:
        if any(_contradicts(values, hypotheses, goal) for values in reversed(self._models)):
            return False
        return self._decided(hypotheses, goal, linear_only=True).verdict == "proved"

    def follows_by_cases(self, hypotheses: Sequence[Truth], goal: Truth) -> bool:
        """The same, also in each case alone of a choice that the goal depends on."""
        if self.follows(hypotheses, goal):
            return True
        choice = next((atom for atom in atoms(goal).values() if atom.op == "choose"), None)
        if choice is None:
            return False
        condition, *sides = choice.args
        for case, side in zip((condition, ~condition), sides, strict=True):
            put = Substitution({choice: side}.get)
            if not self.follows_by_cases([*map(put.truth, hypotheses), put.truth(case)], put.truth(goal)):
                return False
        return True

    def example(self, *conditions: Truth) -> Answer:
        """ "refuted", with values for which all conditions hold; "proved" where there are none."""
        return self.ask(conditions, FALSE)

    @cached_property
    def _context(self) -> z3.Context:
        return z3.Context()

    def _answer(self, claim: Truth, linear_only: bool) -> Answer:
        """z3's answer, whose choices depend on the questions before: remembered for those that begin like others."""
        self.asked += 1
        ranges = [(key, atom.range) for key, atom in atoms(claim).items()]
        said = repr((self._asked, claim.key, linear_only, ranges))
        self._asked = hashlib.blake2b(said.encode()).digest()
        known = _answers.get(self._asked)
        if known is None:
            for before in self._unasked:
                self._answered(*before)
            self._unasked.clear()
            known = self._answered(claim, linear_only), self.steps
            _answers.put(self._asked, known)
        else:
            self._unasked.append((claim, linear_only))
        answer, self.steps = known
        return answer

    def _answered(self, claim: Truth, linear_only: bool) -> Answer:
        question = Query(claim)
        found = self._linear(question, linear_only)
        if found is not OPEN or linear_only or question.is_linear:
            return found
        return self._with_products(question, STEPS)

    def _with_products(self, question: Query, steps: int) -> Answer:
        found = self._run(question.text(linear=False), steps)
        if found is z3.unsat:
            return PROVED
        return _refuted(question, found) if isinstance(found, dict) else OPEN

    def _linear(self, question: Query, linear_only: bool) -> Answer:
        """By linear arithmetic, to which facts about products are added until they suffice, or no more are known."""
        solver = self._solver(question.text(linear=True))
        lemmas, tried = None, dict[str, bool]()
        for _ in range(ROUNDS):
            found = self._check(solver, STEPS)
            if found is z3.unsat:
                return PROVED
            if found is z3.unknown:
                return OPEN
            model = _model(solver)
            answer = _refuted(question, model)
            if answer.verdict == "refuted":
                return answer
            missed = question.powers_missed(model)
            if missed:
                solver.from_string(missed)
                continue
            if question.is_linear:
                return answer
            lemmas = lemmas or Lemmas([*question.products], question.conditions, self._positive(solver, question))
            values = question.values(model)
            added = [*islice(lemmas.violated(lemmas.certain, values), ROUNDS)]
            if not added and not tried and not linear_only:
                found = self._with_products(Query(question.claim), FEW_STEPS)
                if found is not OPEN:
                    return found
            added = added or self._wanted(solver, question, lemmas, values, tried)
            if not added:
                return OPEN
            solver.from_string(question.more(*(lemma.fact for lemma in added)))
        return OPEN

    def _positive(self, solver: Any, question: Query) -> frozenset[Atom]:
        """The factors that the solver shows not to be negative, where their ranges do not."""
        doubtful = {atom: None for mono in question.products for atom in mono if not never_negative(atom)}
        return frozenset(atom for atom in doubtful if self._shows(solver, question, of_atom(atom)))

    def _shows(self, solver: Any, question: Query, value: Term, *beside: Term) -> bool:
        """Whether the value is not negative; `beside` are not if it is."""
        solver.push()
        solver.from_string(question.more(-value - 1, *beside))
        found = self._check(solver, FEW_STEPS) is z3.unsat
        solver.pop()
        return found

    def _wanted(
        self, solver: Any, question: Query, lemmas: Lemmas, values: Values, tried: dict[str, bool]
    ) -> list[Lemma]:
        """Facts that the solver's answer contradicts and that follow: each from something that is tried."""
        candidates = lemmas.violated(lemmas.conditional, values)
        return [*islice((c for c in candidates if self._follows(solver, question, lemmas, c, tried)), ROUNDS)]

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
        solver = self._solver(text)
        found = self._check(solver, steps)
        return _model(solver) if found is z3.sat else found

    def _solver(self, text: str) -> Any:
        solver = z3.SimpleSolver(ctx=self._context)
        solver.set("ctrl_c", False)  # an interrupt is Python's, and no answer of the solver's
        solver.from_string(text)
        return solver

    def _check(self, solver: Any, steps: int) -> Any:
        solver.set("rlimit", steps)
        result = solver.check()
        self.steps = max(self.steps, _steps(solver))  # the context's own count, of all questions
        return z3.unsat if result == z3.unsat else z3.sat if result == z3.sat else z3.unknown


_CONSTANT = re.compile(r"\(define-fun (\|[^|]*\||\S+) \(\) (?:Int|Bool)\s+(true|false|\d+|\(- \d+\))\)")


def _model(solver: Any) -> dict[str, Any]:
    """The values of the solver's answer by their names, read from its text: z3's objects take much longer."""
    return {name.strip("|"): _number(value) for name, value in _CONSTANT.findall(solver.model().sexpr())}


def _refuted(question: Query, found: Mapping[str, Any]) -> Answer:
    """A model, where it is one indeed: what was left out of the question may say no."""
    values = question.named(found)
    return Answer("refuted", values) if _holds(question.claim, values) else OPEN


def _near(hypotheses: Sequence[Truth], goal: Truth) -> list[Truth]:
    """The parts of the hypotheses that are about the goal's variables alone."""
    parts = [part for whole in hypotheses for part in parts_of(whole)]
    mine = {key for key, atom in atoms(goal).items() if atom.op in ("var", "read")}
    return [part for part in parts if all(a.op not in ("var", "read") or key in mine for key, a in atoms(part).items())]


_COUNT = re.compile(r":rlimit-count\s+(\d+)")


def _steps(solver: Any) -> int:
    found = _COUNT.search(str(solver.statistics()))
    return int(found[1]) if found else 0


def _number(value: str) -> int | bool:
    return value == "true" if value in ("true", "false") else int(value.strip("()").replace(" ", ""))


def _holds(claim: Truth, values: Mapping[str, int]) -> bool:
    try:
        return truth_of(claim, values)
    except Undefined:
        return False


def _contradicts(values: Mapping[str, int], hypotheses: Sequence[Truth], goal: Truth) -> bool:
    """Whether the goal does not hold for these values, and all hypotheses do."""
    try:
        return not truth_of(goal, values) and all(truth_of(one, values) for one in hypotheses)
    except Undefined:
        return False


# --- a claim as text for the solver (SMT-LIB), with what is true of each operation in it ------------------------------


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
