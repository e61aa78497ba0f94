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
    return int(Evaluation(values).term(term))


def truth_of(condition: Truth, values: Mapping[str, Any]) -> bool:
    """Whether `condition` holds; raises as `value_of` does."""
    return bool(Evaluation(values).truth(condition))


class Evaluation:
    """Works terms out, with whole numbers here: a class of another kind of numbers says what these do otherwise."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values
        self.known: dict[str, Any] = {}

    def given(self, atom: Atom) -> Any:
        """What a variable is, or an element of a tensor."""
        if atom.key not in self.values:
            raise Undefined(atom.key)
        return int(self.values[atom.key])

    def chosen(self, condition: Truth, yes: Term, no: Term) -> Any:
        """One of two, by a condition."""
        return self.term(yes) if self.truth(condition) else self.term(no)

    def power(self, value: Any) -> Any:
        """The least power of two that is not below it."""
        return next_power_of_2(value)

    def divided(self, a: Any, b: Any, rest: bool) -> Any:
        """The quotient, rounded down, or what is left."""
        if b <= 0:
            raise Undefined(f"division by {b}")
        return a % b if rest else a // b

    def term(self, term: Term) -> Any:
        """The number that a term is."""
        total: Any = 0
        for mono, number in term.parts.items():
            factor: Any = number
            for atom in mono:
                factor = factor * self.atom(atom)
            total = total + factor
        return total

    def atom(self, atom: Atom) -> Any:
        """The number that an atom is."""
        if atom.key not in self.known:
            self.known[atom.key] = self._atom(atom)
        return self.known[atom.key]

    def _atom(self, atom: Atom) -> Any:
        if atom.op in ("var", "read"):
            return self.given(atom)
        if atom.op == "choose":
            return self.chosen(*atom.args)
        if atom.op == "power":
            return self.power(self.term(atom.args[0]))
        a, b = map(self.term, atom.args)
        return self.divided(a, b, atom.op == "mod")

    def truth(self, condition: Truth) -> Any:
        """Whether a condition holds."""
        match condition.op:
            case "true" | "false":
                return condition.op == "true"
            case "le":
                return self.term(condition.args[0]) <= 0
            case "eq":
                return self.term(condition.args[0]) == 0
            case "not":
                return self.truth(condition.args[0]) ^ True
            case "and" | "or":
                return self._together(condition)
            case "free":
                return self.unknown(condition)
        raise Undefined(condition.op)

    def unknown(self, condition: Truth) -> Any:
        """A condition that nobody knows: false, unless it is among the values."""
        return bool(self.values.get(condition.args[0], False))

    def _together(self, condition: Truth) -> Any:
        is_any = condition.op == "or"
        found: Any = not is_any
        for part in condition.args:
            found = found | self.truth(part) if is_any else found & self.truth(part)
            if found is is_any:  # whatever the others are
                return found
        return found
