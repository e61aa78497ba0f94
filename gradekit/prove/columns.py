"""Terms for many calls at once, as columns of whole numbers: those of host code, and a solver's."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gradekit.prove.terms import Term, Truth
from gradekit.prove.value_of import Evaluation, Undefined
from gradekit.size_terms import Algebra

Numbers = Tensor | int
"""One number for each of many calls (int64), or one for all."""

_POWERS = torch.tensor([1 << k for k in range(62)])


class Columns(Algebra):
    """One number for each of many calls, or one for all; what is divided by zero is itself."""

    def applied(self, symbol: str, a: Any, b: Any) -> Any:
        """See `Algebra`."""
        if symbol not in ("//", "%") or isinstance(a, int) and isinstance(b, int):
            return super().applied(symbol, a, b)
        quotient = floor_divided(a, b)
        return quotient if symbol == "//" else a - quotient * torch.where(torch.as_tensor(b) == 0, 1, b)

    def power(self, a: Any) -> Any:
        """See `Algebra`."""
        if isinstance(a, int):
            return super().power(a)
        return torch.where(a > 0, _POWERS[torch.searchsorted(_POWERS, a).clamp(max=61)], 0)


COLUMNS = Columns()


def floor_divided(a: Any, b: Any) -> Any:
    """a // b; where b is 0, a."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b if b else a
    divisor = torch.as_tensor(b)
    return torch.div(torch.as_tensor(a), torch.where(divisor == 0, 1, divisor), rounding_mode="floor")


class ColumnEvaluation(Evaluation):
    """Works a solver's terms out for columns: int64, and bool for conditions."""

    def given(self, atom: Any) -> Any:
        """See `Evaluation`."""
        if atom not in self.values:
            raise Undefined(atom.key)
        return self.values[atom]

    def chosen(self, condition: Truth, yes: Term, no: Term) -> Any:
        """See `Evaluation`."""
        holds = self.truth(condition)
        if not isinstance(holds, Tensor):
            return self.term(yes if holds else no)
        return torch.where(holds, torch.as_tensor(self.term(yes)), torch.as_tensor(self.term(no)))

    def power(self, value: Any) -> Any:
        """See `Evaluation`."""
        return COLUMNS.power(value)

    def divided(self, a: Any, b: Any, rest: bool) -> Any:
        """See `Evaluation`; what is divided by zero is itself."""
        return COLUMNS.applied("%" if rest else "//", a, b)

    def unknown(self, condition: Truth) -> Any:
        """See `Evaluation`."""
        raise Undefined(str(condition.args[0]))
