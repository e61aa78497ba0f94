"""Size terms of many calls at once, as columns of whole numbers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

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
