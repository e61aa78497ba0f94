"""Questions to the solver: does a goal follow from hypotheses, for all integers?

z3 decides them, products of sizes included. Limits are counted in its own steps, which are the same on every machine.
"""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import combinations, product
from typing import Any

import z3

from gradekit.prove import Limit
from gradekit.prove.terms import FALSE, TRUE, Atom, Monomial, Term, Truth, atoms, both, equal, of_atom, parts_of, split
from gradekit.prove.value_of import Evaluation
from gradekit.reuse import SharedCache, shared

ALL = len(Limit.TRIES)


@dataclass(frozen=True)
class Answer:
    """`verdict` is "proved", "refuted" (for `values` with which hypotheses hold and the goal does not) or "open"."""

    verdict: str
    values: Mapping[str, int] = field(default_factory=dict)


PROVED, OPEN = Answer("proved"), Answer("open")


_answers: SharedCache[bytes, tuple[Answer, int]] = shared(1 << 14)
"""By all that a solver was asked until then: the answer, and the steps that it had taken."""


class Solver:
    """Answers questions, equal ones once; `steps` counts what they took. Counterexamples have `sizes` that are small,
    where that can be. Once `limit` steps are used up, everything that is not known yet is open."""

    def __init__(self, limit: int = Limit.SOLVER_STEPS) -> None:
        self._known: dict[str, Answer] = {}
        self._asked = b""  # a digest of all questions so far
        self._unasked = list[tuple[Truth, int]]()  # those since z3 was asked last, whose answers were remembered
        self._models: deque[Evaluation] = deque(maxlen=Limit.COUNTEREXAMPLES)  # of questions that were refuted
        self.limit = limit
        self.sizes: Sequence[Term] = ()
        self.steps = 0

    def ask(self, hypotheses: Sequence[Truth], goal: Truth, tries: int = ALL) -> Answer:
        """Whether the goal follows, part by part, from the hypotheses about the same variables or from all."""
        parts = parts_of(goal)
        if len(parts) != 1:
            answers = (self.ask(hypotheses, part, tries) for part in parts)
            return next((answer for answer in answers if answer.verdict != "proved"), PROVED)
        answer = self._decided(hypotheses, goal, tries)
        return self._smaller(hypotheses, goal, answer) if answer.verdict == "refuted" and self.sizes else answer

    def _decided(self, hypotheses: Sequence[Truth], goal: Truth, tries: int) -> Answer:
        near = _near(hypotheses, goal)
        if len(near) < len(hypotheses) and self._once(near, goal, 1).verdict == "proved":
            return PROVED
        return self._once(hypotheses, goal, tries)

    def _smaller(self, hypotheses: Sequence[Truth], goal: Truth, found: Answer) -> Answer:
        """The same with smaller sizes, if there are such: what the engine can run, and a person imagine."""
        for bound in Limit.SMALL:
            bounds = [Truth("le", (size - bound,)) for size in self.sizes]
            answer = self._once([*hypotheses, *bounds], goal)
            if answer.verdict == "refuted":
                return answer
        return found

    def _once(self, hypotheses: Sequence[Truth], goal: Truth, tries: int = ALL) -> Answer:
        """The same as a whole, without a search for small sizes."""
        claim = both(*hypotheses, ~goal)
        if claim.op == "false":
            return PROVED
        key = claim.key + f" {tries}"
        if key not in self._known:
            if self.steps > self.limit:
                return OPEN
            self._known[key] = answer = self._answer(claim, tries)
            if answer.values:
                self._models.append(Evaluation(answer.values, unknown=False))
        return self._known[key]

    def follows(self, hypotheses: Sequence[Truth], goal: Truth) -> bool:
        """Whether one try shows that the goal follows."""
        return goal.op == "true" or all(self._follows_alone(hypotheses, part) for part in parts_of(goal))

    def _follows_alone(self, hypotheses: Sequence[Truth], goal: Truth) -> bool:
        refuted = (~goal, *hypotheses)
        if any(model.holds(*refuted) for model in reversed(self._models)):
            return False
        return self._decided(hypotheses, goal, 1).verdict == "proved"

    def example(self, *conditions: Truth) -> Answer:
        """ "refuted", with values for which all conditions hold; "proved" where there are none."""
        return self.ask(conditions, FALSE)

    @cached_property
    def _context(self) -> z3.Context:
        return z3.Context()

    def _answer(self, claim: Truth, tries: int) -> Answer:
        """z3's answer, whose choices depend on the questions before: remembered for those that begin like others."""
        ranges = [(key, atom.range) for key, atom in atoms(claim).items()]
        said = repr((self._asked, claim.key, tries, ranges))
        self._asked = hashlib.blake2b(said.encode()).digest()
        known = _answers.get(self._asked)
        if known is None:
            for before in self._unasked:
                self._answered(*before)
            self._unasked.clear()
            known = self._answered(claim, tries), self.steps
            _answers.put(self._asked, known)
        else:
            self._unasked.append((claim, tries))
        answer, self.steps = known
        return answer

    def _answered(self, claim: Truth, tries: int) -> Answer:
        """By linear arithmetic alone; what that leaves open with products as they are, and so many `tries`."""
        claimed = Claimed(claim)
        for seed, steps in ((None, Limit.TRIES[-1]), *enumerate(Limit.TRIES[:tries])):
            if (answer := self._tried(claimed, steps, seed)) is not OPEN:
                return answer
        return OPEN

    def _tried(self, claimed: Claimed, steps: int, seed: int | None) -> Answer:
        query = Query(claimed, is_linear=seed is None)
        solver = z3.SimpleSolver(ctx=self._context)
        solver.set(random_seed=seed or 0, **_SETTINGS)
        solver.from_string(query.text)
        while (found := self._check(solver, steps)) == z3.sat:
            values = query.values(solver.model().sexpr())
            if Evaluation(values, unknown=False).holds(claimed.claim):
                return Answer("refuted", values)
            missed = query.powers_missed(values)
            if not missed:
                return OPEN
            solver.from_string(missed)
        return PROVED if found == z3.unsat else OPEN

    def _check(self, solver: Any, steps: int) -> Any:
        solver.set("rlimit", steps)
        result = solver.check()
        count = _COUNT.search(str(solver.statistics()))
        self.steps = max(self.steps, int(count[1]) if count else 0)  # the context's own count, of all questions
        return result


def _near(hypotheses: Sequence[Truth], goal: Truth) -> list[Truth]:
    """The parts of the hypotheses that are about the goal's variables alone."""
    parts = [part for whole in hypotheses for part in parts_of(whole)]
    return [part for part in parts if _variables(part) <= _variables(goal)]


@lru_cache(1 << 12)  # the same hypotheses are those of many questions
def _variables(condition: Truth) -> frozenset[str]:
    """The keys of the variables and elements that a condition is about."""
    return frozenset(key for key, atom in atoms(condition).items() if atom.op in ("var", "read"))


_SETTINGS = {
    "ctrl_c": False,  # an interrupt is Python's, and no answer of the solver's
    "smt.arith.nl.grobner": False, "smt.arith.nl.horner": False,  # most of the steps, and next to no decisions here
}  # fmt: skip
_COUNT = re.compile(r":rlimit-count\s+(\d+)")
_CONSTANT = re.compile(r"\(define-fun (\|[^|]*\||\S+) \(\) (?:Int|Bool)\s+(true|false|\d+|\(- \d+\))\)")


def _number(value: str) -> int | bool:
    return value == "true" if value in ("true", "false") else int(value.strip("()").replace(" ", ""))


# --- a claim as text for the solver (SMT-LIB), with what is true of each operation in it ------------------------------

BITS = 64  # powers of two up to two to this one are told apart


class Claimed:
    """A claim, its atoms and their `names` for the solver, and the facts that are true of them."""

    def __init__(self, claim: Truth) -> None:
        self.claim, own = claim, atoms(claim)
        self.facts = [fact for atom in own.values() for fact in _meaning(atom)]
        self.powers = {key: atom for key, atom in own.items() if atom.op == "power"}
        self.atoms = atoms(claim, *self.facts)
        known = [one.args[0] for one in (*parts_of(claim), *self.facts) if one.op == "le"]
        self.facts += [*_same_reads(self.atoms), *_of_quotients(self.atoms, known)]
        self.names = {key: f"v{number}" for number, key in enumerate(self.atoms)}


class Query:
    """A claim in SMT-LIB, satisfiable where it can hold; where it `is_linear`, products are variables of any value."""

    def __init__(self, claimed: Claimed, is_linear: bool) -> None:
        self._said, self._is_linear = (claimed.claim, *claimed.facts), is_linear
        self.atoms, self.names, self.powers = claimed.atoms, claimed.names, claimed.powers
        self.products: dict[Monomial, str] = {}

    def values(self, model: str) -> dict[str, int]:
        """The numbers that a model gives, by the keys of the atoms, read from its text: z3's objects take longer."""
        given = {name.strip("|"): _number(value) for name, value in _CONSTANT.findall(model)}
        found = {key: given.get(name, _any(self.atoms[key])) for key, name in self.names.items()}
        return found | {name[5:]: value for name, value in given.items() if name.startswith("free_")}

    def powers_missed(self, values: Mapping[str, int]) -> str:
        """What tells the solver which numbers the powers are that are others in its answer; "" where none is."""
        answered = Evaluation(values, unknown=False)
        missed = [one for one in self.powers.values() if not answered.holds(equal(of_atom(one), values[one.key]))]
        self.powers = {key: atom for key, atom in self.powers.items() if atom not in missed}
        return "\n".join(f"(assert {self._truth(_power(of_atom(atom), atom.args[0]))})" for atom in missed)

    @property
    def text(self) -> str:
        """The question."""
        asserts = [f"(assert {self._truth(condition)})" for condition in self._said]
        bounds = [bound for key, atom in self.atoms.items() for bound in _bounds(self.names[key], atom)]
        free = dict.fromkeys(one.args[0] for one in _leaves(self._said) if one.op == "free")
        declared = [f"(declare-const {name} Int)" for name in (*self.names.values(), *self.products.values())]
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
        names = [self.names[atom.key] for atom in mono]
        if len(mono) > 1 and self._is_linear:
            names = [self.products.setdefault(mono, f"p{len(self.products)}")]
        inner = f"(* {' '.join(names)})" if len(names) > 1 else names[0] if names else "1"
        return inner if factor == 1 else _written(factor) if not mono else f"(* {_written(factor)} {inner})"


def _written(number: int) -> str:
    return str(number) if number >= 0 else f"(- {-number})"


def _any(atom: Atom) -> int:
    low, high = atom.range
    return low if low is not None else min(high, 0) if high is not None else 0


def _bounds(name: str, atom: Atom) -> Iterator[str]:
    """Of a quotient, a remainder or a power they hold under a condition, which `_meaning` says."""
    low, high = atom.range if atom.op in ("var", "read", "choose") else (None, None)
    if low is not None:
        yield f"(assert (>= {name} {_written(low)}))"
    if high is not None:
        yield f"(assert (<= {name} {_written(high)}))"


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


def _of_quotients(found: Mapping[str, Atom], known: Sequence[Term]) -> Iterator[Truth]:
    """Of two quotients by one divisor, the greater is greater by one or more divisors; and from a < b * x follows
    a // b < x. What is `known` is that these terms are no greater than zero."""
    quotients = [atom for atom in found.values() if atom.op == "div"]
    for one, other in combinations(quotients, 2):
        gap, by = of_atom(one) - of_atom(other), one.args[1]
        if by == other.args[1]:
            apart = [both(Truth("le", (1 - way,)), Truth("le", ((1 - way) * by,))) for way in (gap, -gap)]
            yield _implied(by >= 1, Truth("or", (Truth("eq", (gap,)), *apart)))
    for one, term in product(quotients, known):
        whole, rest = split(term - one.args[0], one.args[1])
        if rest.number is not None and rest.number >= 0:
            yield _implied(one.args[1] >= 1, Truth("le", (of_atom(one) + whole + (rest.number > 0),)))


def _leaves(conditions: Sequence[Truth]) -> Iterator[Truth]:
    """The comparisons, and what nobody knows, of which conditions are made."""
    for condition in conditions:
        if condition.op in ("le", "eq", "free"):
            yield condition
        else:
            yield from _leaves(condition.args)
