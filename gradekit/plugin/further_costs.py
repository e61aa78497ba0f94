"""What the further calls of a submission have cost, in work: what takes much is tried once."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gradekit.inputs.spec import Input

if TYPE_CHECKING:
    from gradekit.unseen.further import FurtherCall

MUCH = 10_000_000
"""The work of a call that no other check repeats for the same comparison, dtypes and kinds of values. What is less says
nothing of larger calls: a tile takes as much for one element as for all."""

MOST_EXPECTED = 60_000_000
"""The work that may be expected of a larger call, from that of a smaller one for the same comparison."""

_NUMBERS = re.compile(r"[\d.]+")


@dataclass(frozen=True)
class Cost:
    """The elements of a call, and its work, in one check."""

    check: str
    elements: int
    work: int


@dataclass
class FurtherCosts:
    """Those of the calls that were made first, by what they were made for."""

    _known: dict[Any, Cost] = field(default_factory=dict)

    def spares(self, call: FurtherCall, check: str) -> bool:
        """Whether the call would cost much, and show what another has shown."""
        known = self._known.get(_purpose(call))
        if known is None or known.work <= MUCH:
            return False
        return known.check != check or known.work * _elements(call) > MOST_EXPECTED * known.elements

    def note(self, call: FurtherCall, check: str, work: int) -> None:
        """What a call has cost; nothing where its result was known."""
        if work:
            self._known.setdefault(_purpose(call), Cost(check, max(_elements(call), 1), work))


def _purpose(call: FurtherCall) -> Any:
    """Equal for calls that ask for the same with like tensors."""
    tensors = (arg for arg in call.call if isinstance(arg, Input))
    return call.line, call.why, tuple((one.dtype, _NUMBERS.sub("", one.profile)) for one in tensors)


def _elements(call: FurtherCall) -> int:
    return sum(arg.numel for arg in call.call if isinstance(arg, Input))
