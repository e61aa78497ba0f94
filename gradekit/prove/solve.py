"""Questions to the solver: does a goal follow from hypotheses, for all integers?

First every product of variables is taken for a number of which nothing is known but a few consequences of the
hypotheses: what follows then, follows, and linear arithmetic decides it in a millisecond. Only what does not is asked
with products as they are. Limits are counted in the solver's own steps, which are the same on every machine.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import z3

from gradekit.prove.query import Lemma, Lemmas, Query, Values, never_negative
from gradekit.prove.terms import FALSE, Atom, Substitution, Term, Truth, alone, atoms, both, of_atom, parts_of
from gradekit.prove.value_of import Undefined, truth_of

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


class Solver:
    """Answers questions, equal ones once; `steps` counts what they took, `asked` how many were not known.

    Counterexamples have `sizes` that are small, where that can be. Once `limit` steps are used up,
    everything that is not known yet is open.
    """

    def __init__(self, limit: int = MOST_STEPS) -> None:
        self._context = z3.Context()
        self._known: dict[str, Answer] = {}
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

    def _answer(self, claim: Truth, linear_only: bool) -> Answer:
        self.asked += 1
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
