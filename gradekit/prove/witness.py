"""Who computes an element: the program, turn and lanes for which an address is the element's, found by inverting it.

An address is a sum of counters times steps, where each step is as long as all shorter ones reach: pid * 1024 + lane. So
the counter of the longest step is the element divided by it, and the rest is for the others. Quotients and remainders
of one counter by one number (pid // n, pid % n) are two counters, from which the one is put together again. What comes
out is a guess, which the solver then checks: a wrong one proves nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gradekit.prove.parts import Substitution, atoms
from gradekit.prove.setting import inside
from gradekit.prove.solve import Solver
from gradekit.prove.terms import ZERO, Atom, Monomial, Term, Truth, div, mod, of_atom, split, var, without

MOST_SPLITS = 6


class NoWitness(Exception):
    """The address is not of a kind that can be inverted."""


def witness(equations: Sequence[tuple[Term, Term]], counters: Sequence[Atom]) -> dict[str, Term]:
    """Values for all counters (by key) for which each of the equations may hold: (term with counters, element).

    Raises:
        NoWitness: nothing can be guessed.
    """
    parts = _Splits(counters)
    left = [(parts.split(address), element) for address, element in equations]
    found: dict[str, Term] = {}
    for address, element in sorted(left, key=lambda pair: len(_free(pair[0], parts.keys))):
        address = _put(address, found)
        found |= _inverted(address, element, parts.keys)
    return parts.joined(found)


class _Splits:
    """Counters, and the two that each division makes of one."""

    def __init__(self, counters: Sequence[Atom]) -> None:
        self.counters = list(counters)
        self.keys = {counter.key for counter in counters}
        self.made: list[tuple[Term, Term, Term, Term]] = []  # whole, divisor, quotient, rest

    def split(self, address: Term) -> Term:
        """The address with new counters in place of quotients and remainders of counters."""
        for whole, divisor, quotient, rest in self.made:
            address = _divided(address, whole, divisor, quotient, rest)
        for _ in range(MOST_SPLITS):
            division = self._innermost(address)
            if division is None:
                return address
            whole, divisor = division.args
            number = len(self.made)
            quotient, rest = var(f"quotient {number}", 0), var(f"rest {number}", 0)
            self.keys |= {key for one in (quotient, rest) for key in atoms(one)}
            self.made.append((whole, divisor, quotient, rest))
            address = _divided(address, whole, divisor, quotient, rest)
        raise NoWitness("too many divisions")

    def _innermost(self, address: Term) -> Atom | None:
        for atom in atoms(address).values():  # parts stand before what is made of them
            if atom.op in ("div", "mod") and _free(atom.args[0], self.keys):
                return atom
        return None

    def joined(self, found: Mapping[str, Term]) -> dict[str, Term]:
        """Values for the counters, from those of their parts."""
        known = dict(found)
        for whole, divisor, quotient, rest in reversed(self.made):
            value = _value(quotient, known) * _put(divisor, known) + _value(rest, known)
            known |= _inverted(_put(whole, known), value, self.keys)
        return {counter.key: known.get(counter.key, ZERO) for counter in self.counters}


def _value(counter: Term, known: Mapping[str, Term]) -> Term:
    return known.get(counter.atom or "", ZERO)


def _divided(address: Term, whole: Term, divisor: Term, quotient: Term, rest: Term) -> Term:
    keys = {atom.key: counter for op, counter in (("div", quotient), ("mod", rest))
            for atom in [Atom(op, (whole, divisor))]}  # fmt: skip
    return Substitution(keys.get).term(address)


def _put(value: Term, known: Mapping[str, Term]) -> Term:
    return Substitution(known.get).term(value)


def _free(value: Term, keys: set[str]) -> list[str]:
    return [key for key in atoms(value) if key in keys]


def _inverted(address: Term, element: Term, keys: set[str]) -> dict[str, Term]:
    """The counters in a sum, each divided out of what is left of the element, the longest step first."""
    steps: dict[str, Term] = {}
    fixed = ZERO
    for mono, factor in address.parts.items():
        mine = [atom for atom in mono if atom.key in keys]
        if len(mine) > 1 or any(_free(of_atom(atom), keys) for atom in mono if atom.key not in keys):
            raise NoWitness("counters are multiplied with each other")
        if not mine:
            fixed = fixed + Term({mono: factor})
            continue
        rest: Monomial | None = without(mono, (mine[0],))
        steps[mine[0].key] = steps.get(mine[0].key, ZERO) + Term({rest or (): factor})
    left, found = element - fixed, dict[str, Term]()
    for key, step in sorted(steps.items(), key=lambda item: _length(item[1]), reverse=True):
        down = max(step.parts.values()) < 0
        step = -step if down else step
        quotient, left = div(left, step), mod(left, step)
        found[key] = -quotient if down else quotient
    return found


def _length(step: Term) -> tuple[int, int, int]:
    """Orders steps: more variables are longer, then larger numbers, whichever way they go."""
    signs = {factor > 0 for factor in step.parts.values()}
    if len(signs) != 1:
        raise NoWitness("a counter's step may be of either sign")
    return max(map(len, step.parts)), len(step.parts), max(map(abs, step.parts.values()))


class Simpler:
    """Takes quotients and remainders away that are none: of what is known to be smaller than the divisor."""

    def __init__(self, solver: Solver, hypotheses: Sequence[Truth]) -> None:
        self._put = Substitution(self._simple)
        self.solver, self.hypotheses = solver, hypotheses

    def term(self, value: Term) -> Term:
        """The term, simpler."""
        return self._put.term(value)

    def truth(self, value: Truth) -> Truth:
        """The condition, simpler."""
        return self._put.truth(value)

    def _simple(self, atom: Atom) -> Term | None:
        if atom.op not in ("div", "mod"):
            return None
        a, b = self.term(atom.args[0]), self.term(atom.args[1])
        whole, rest = split(a, b)
        if self.solver.follows(self.hypotheses, inside(rest, b)):
            return rest if atom.op == "mod" else whole
        return div(a, b) if atom.op == "div" else a - b * div(a, b)
