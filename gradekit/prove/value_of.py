"""The numbers that terms are, and whether conditions hold, for given values of their variables."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from gradekit.arithmetic import next_power_of_2
from gradekit.prove.terms import Atom, Term, Truth


class Undefined(Exception):
    """A value is asked for that nobody gave, or a division by what is not positive."""


def value_of(term: Term, values: Mapping[str, Any]) -> int:
    """The number that `term` is for these values of atoms, by key. Raises Undefined where one is missing."""
    return int(Evaluation(values, unknown=False).term(term))


Numbers = Tensor | int  # one number for each of many calls (int64), or one for all

_POWERS = torch.tensor([1 << k for k in range(62)])
LARGEST = 1 << 62  # of a number beside columns


class Evaluation:
    """Works terms out with whole numbers, or columns of them for many calls at once (bool for conditions); a divisor
    that is zero in some is 1 there. `unknown` is what a condition without a value is; None: it is Undefined."""

    def __init__(self, values: Mapping[str, Any], unknown: bool | None = None) -> None:
        self.values, self.unknown = values, unknown
        self.known: dict[str, Any] = {}

    def given(self, atom: Atom) -> Any:
        """What a variable is, or an element of a tensor."""
        if atom not in self.values:
            raise Undefined(atom.key)
        return self.values[atom]

    def term(self, term: Term) -> Any:
        """The number that a term is."""
        total: Any = None
        for mono, number in term.parts.items():
            factor: Any = number
            for atom in mono:
                value = self.atom(atom)
                if isinstance(value, Tensor) and abs(number) >= LARGEST:
                    raise Undefined(str(number))  # no column holds it
                is_same = isinstance(factor, int) and factor == 1 and getattr(value, "dtype", None) == torch.int64
                factor = value if is_same else factor * value
            total = factor if total is None else total + factor
        return 0 if total is None else total

    def atom(self, atom: Atom) -> Any:
        """The number that an atom is."""
        if atom.key not in self.known:
            self.known[atom.key] = self._atom(atom)
        return self.known[atom.key]

    def _atom(self, atom: Atom) -> Any:
        if atom.op in ("var", "read"):
            return self.given(atom)
        if atom.op == "choose":
            return self._chosen(*atom.args)
        if atom.op == "power":
            return _power(self.term(atom.args[0]))
        a, b = map(self.term, atom.args)
        quotient = divided(a, b)
        return quotient if atom.op == "div" else a - quotient * b

    def _chosen(self, condition: Truth, yes: Term, no: Term) -> Any:
        holds = self.truth(condition)
        if not isinstance(holds, Tensor):
            return self.term(yes if holds else no)
        return torch.where(holds, torch.as_tensor(self.term(yes)), torch.as_tensor(self.term(no)))

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
        found = self.values.get(condition.args[0], self.unknown)
        if found is None:
            raise Undefined(condition.args[0])
        return bool(found)

    def holds(self, *conditions: Truth) -> bool:
        """Whether all conditions hold; not where one is Undefined."""
        try:
            return all(map(self.truth, conditions))
        except Undefined:
            return False

    def _together(self, condition: Truth) -> Any:
        is_any = condition.op == "or"
        found: Any = not is_any
        for part in condition.args:
            found = found | self.truth(part) if is_any else found & self.truth(part)
            if found is is_any:  # whatever the others are
                return found
        return found


def divided(a: Numbers, b: Numbers) -> Any:
    """The quotient, rounded down; raises Undefined where one number divides all, and is not positive."""
    if isinstance(b, int):
        if b <= 0:
            raise Undefined(f"division by {b}")
        return a // b if isinstance(a, int) else torch.div(a, b, rounding_mode="floor")
    return torch.div(torch.as_tensor(a), torch.where(b == 0, 1, b), rounding_mode="floor")


def _power(value: Numbers) -> Any:
    if not isinstance(value, Tensor):
        return next_power_of_2(value)
    return torch.where(value > 0, _POWERS[torch.searchsorted(_POWERS, value).clamp(max=61)], 0)
