"""The numbers that terms are, and whether conditions hold, for given values of their variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradekit.arithmetic import next_power_of_2
from gradekit.prove.terms import Atom, Term, Truth


class Undefined(Exception):
    """A value is asked for that nobody gave, or a division by what is not positive."""


def value_of(term: Term, values: Mapping[str, Any]) -> int:
    """The number that `term` is where atoms have the `values`, by key; operations are worked out.

    Raises:
        Undefined: a variable has no value, or a divisor is not positive.
    """
    return _Evaluation(values).term(term)


def truth_of(condition: Truth, values: Mapping[str, Any]) -> bool:
    """Whether `condition` holds; raises as `value_of` does."""
    return _Evaluation(values).truth(condition)


class _Evaluation:
    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values
        self.known: dict[str, int] = {}

    def term(self, term: Term) -> int:
        total = 0
        for mono, factor in term.parts.items():
            for atom in mono:
                factor *= self.atom(atom)
            total += factor
        return total

    def atom(self, atom: Atom) -> int:
        if atom.key not in self.known:
            self.known[atom.key] = self._atom(atom)
        return self.known[atom.key]

    def _atom(self, atom: Atom) -> int:
        if atom.op in ("var", "read"):
            if atom.key not in self.values:
                raise Undefined(atom.key)
            return int(self.values[atom.key])
        if atom.op == "choose":
            condition, yes, no = atom.args
            return self.term(yes) if self.truth(condition) else self.term(no)
        if atom.op == "power":
            value = self.term(atom.args[0])
            return next_power_of_2(value)
        return self._division(atom)

    def _division(self, atom: Atom) -> int:
        a, b = map(self.term, atom.args)
        if b <= 0:
            raise Undefined(f"{atom.op} by {b}")
        return a // b if atom.op == "div" else a % b

    def truth(self, condition: Truth) -> bool:
        match condition.op:
            case "true" | "false":
                return condition.op == "true"
            case "le":
                return self.term(condition.args[0]) <= 0
            case "eq":
                return self.term(condition.args[0]) == 0
            case "not":
                return not self.truth(condition.args[0])
            case "and":
                return all(map(self.truth, condition.args))
            case "or":
                return any(map(self.truth, condition.args))
            case "free":
                return bool(self.values.get(condition.args[0], False))
        raise Undefined(condition.op)
