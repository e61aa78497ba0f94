"""Calls with one long dimension, all others being short or of usual size: for what is right up to some size without
comparing anything, such as a grid of a fixed number of programs. Pure, nothing is run here.

Each call is several times as long as the one before, as long as the work of those that were made lets expect that it
takes little.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from gradekit.inputs.draws import Draws
from gradekit.unseen.further import FurtherCall, fits, made, rank_of
from gradekit.unseen.host_branches import TracedForm
from gradekit.unseen.scope import FAR, CallScope

LENGTHS = (17, 257, 1031, 4099, 65_551)
"""Primes, or nearly: no tile divides them, and each is beyond a power of two. The steps are short where what
grows as the square begins to show: what one tile holds takes as much work as one element."""

OTHERS = (2, 130)
"""The other dimensions. With short ones, a program often has many elements of the long one; a single element would
often be right by chance."""

MOST_ELEMENTS = 5 << 17
"""Of the largest tensor: references take longest for large ones."""

MOST_WORK, MOST_BEYOND = 60_000_000, 400_000_000
"""The work that is expected of a call, at most, and of one beyond a limit: see gradekit.engine.budget."""

FIRST, LEAST_BEYOND, MOST_LIMITS = (17, 67), 256, 2
"""Lengths that show how work grows before a limit is gone beyond, the least length that is worth it, and how many
limits of a kernel are gone beyond: the largest."""


@dataclass
class LongDimensions:
    """Which dimensions have been stretched: by entry, name, and whether the backward pass was asked for; beyond limits,
    for each kind of values."""

    _done: set[tuple[Any, ...]] = field(default_factory=set)

    def begun(self, draws: Draws, forms: Sequence[TracedForm], limits: Sequence[int] = ()) -> list[Stretch]:
        """Those that are left of this check's calls: to some lengths, and to twice the `limits` of kernels."""
        form = next((one for one in forms if fits(draws, one) and one.elements), None)
        if form is None:
            return []
        scope = CallScope(draws, rank_of(draws, form), True, FAR)
        found = []
        for name in scope.sizes:
            beyond = [2 * n + 1 for n in limits if LEAST_BEYOND <= 2 * n < scope.range(name)[1]][-MOST_LIMITS:]
            if beyond and self._is_new(form, name, draws.values):
                found.append(Stretch(draws, form, scope, name, OTHERS[0], (*FIRST, *beyond), MOST_BEYOND))
        others = OTHERS if len(scope.sizes) > 1 else OTHERS[:1]
        usual = [name for name in scope.sizes if self._is_new(form, name)]
        return found + [Stretch(draws, form, scope, name, other) for name in usual for other in others]

    def _is_new(self, form: TracedForm, name: str, values: Any = None) -> bool:
        key = form.entry, name, bool(form.wanted), values
        is_new = key not in self._done
        self._done.add(key)
        return is_new


@dataclass
class Stretch:
    """One dimension, beside others of size `other` where they may have it; `spent` is told the work of each call."""

    draws: Draws
    form: TracedForm
    scope: CallScope
    name: str
    other: int
    lengths: Sequence[int] = LENGTHS
    most_work: int = MOST_WORK
    _seen: list[tuple[int, int]] = field(default_factory=list)

    def next(self) -> FurtherCall | None:
        """The next call; None where it would be too large, or is beyond what is promised."""
        length = next((n for n in self.lengths if not self._seen or n > self._seen[-1][0]), None)
        least, most = self.scope.range(self.name)
        if length is None or not least <= length <= most or self._expected(length) > self.most_work:
            return None
        sizes = {name: self._short(name) for name in self.scope.names} | {self.name: length}
        columns = {name: torch.tensor([n]) for name, n in sizes.items()}
        if not bool(self.scope.allows(columns)) or float(self.scope.elements(columns)) > MOST_ELEMENTS:
            return None
        self._seen.append((length, 0))
        return FurtherCall(
            made(self.draws, self.form, sizes, 0, {}), f"{self.name} is {length:,}, the others {self.other}"
        )

    def _short(self, name: str) -> int:
        least, most = self.scope.range(name)
        return max(least, min(self.other, most))

    def spent(self, work: int) -> None:
        """The work of the last call."""
        self._seen[-1] = self._seen[-1][0], work

    def _expected(self, length: int) -> float:
        """Two calls show how work grows."""
        if len(self._seen) < 2:
            return 0.0
        (before, less), (last, work) = self._seen[-2:]
        power = math.log(max(work / max(less, 1), 1)) / math.log(last / before)
        return float(work * (length / last) ** power)
