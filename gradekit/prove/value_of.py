"""The numbers that terms are, and whether conditions hold, for given values of their variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from gradekit.arithmetic import next_power_of_2
from gradekit.prove.terms import Atom, Term, Truth
from gradekit.size_terms import Algebra


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

    def _given(self, atom: Atom) -> Any:
        """What a variable is, or an element of a tensor."""
        if atom.key not in self.values:
            raise Undefined(atom.key)
        return int(self.values[atom.key])

    def _chosen(self, condition: Truth, yes: Term, no: Term) -> Any:
        """One of two, by a condition."""
        return self.term(yes) if self.truth(condition) else self.term(no)

    def _power(self, value: Any) -> Any:
        """The least power of two that is not below it."""
        return next_power_of_2(value)

    def _divided(self, a: Any, b: Any, rest: bool) -> Any:
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
            return self._given(atom)
        if atom.op == "choose":
            return self._chosen(*atom.args)
        if atom.op == "power":
            return self._power(self.term(atom.args[0]))
        a, b = map(self.term, atom.args)
        return self._divided(a, b, atom.op == "mod")

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
                return self._unknown(condition)
        raise Undefined(condition.op)

    def _unknown(self, condition: Truth) -> Any:
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


# --- terms for many calls at once, as columns of whole numbers: those of host code, and a solver's --------------------


Numbers = Tensor | int
"""One number for each of many calls (int64), or one for all."""

_POWERS = torch.tensor([1 << k for k in range(62)])


class _Columns(Algebra):
    """One number for each of many calls, or one for all; what is divided by zero is itself."""

    def applied(self, symbol: str, a: Any, b: Any) -> Any:
        if symbol not in ("//", "%") or isinstance(a, int) and isinstance(b, int):
            return super().applied(symbol, a, b)
        divisor = torch.as_tensor(b)
        divisor = torch.where(divisor == 0, 1, divisor)
        quotient = torch.div(torch.as_tensor(a), divisor, rounding_mode="floor")
        return quotient if symbol == "//" else a - quotient * divisor

    def power(self, a: Any) -> Any:
        if isinstance(a, int):
            return super().power(a)
        return torch.where(a > 0, _POWERS[torch.searchsorted(_POWERS, a).clamp(max=61)], 0)


COLUMNS = _Columns()


class ColumnEvaluation(Evaluation):
    """Works a solver's terms out for columns: int64, and bool for conditions."""

    def _given(self, atom: Any) -> Any:
        if atom not in self.values:
            raise Undefined(atom.key)
        return self.values[atom]

    def _chosen(self, condition: Truth, yes: Term, no: Term) -> Any:
        holds = self.truth(condition)
        if not isinstance(holds, Tensor):
            return self.term(yes if holds else no)
        return torch.where(holds, torch.as_tensor(self.term(yes)), torch.as_tensor(self.term(no)))

    def _power(self, value: Any) -> Any:
        return COLUMNS.power(value)

    def _divided(self, a: Any, b: Any, rest: bool) -> Any:
        return COLUMNS.applied("%" if rest else "//", a, b)

    def _unknown(self, condition: Truth) -> Any:
        raise Undefined(str(condition.args[0]))
