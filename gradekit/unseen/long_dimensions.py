"""Calls with one long dimension, all others being short or of usual size: for what is right up to some size without
comparing anything, such as a grid of a fixed number of programs. Pure, nothing is run here.

Each call is several times as long as the one before, as long as the work of those that were made lets expect that it
takes little.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from gradekit.inputs.draws import Draws
from gradekit.inputs.spec import Input
from gradekit.unseen.further import FurtherCall, fits, made, rank_of, widest
from gradekit.unseen.host_branches import TracedForm
from gradekit.unseen.scope import FAR, CallScope

LENGTHS = (17, 257, 1031, 4099, 65_551)
"""Primes, or nearly: no tile divides them, and each is beyond a power of two. The steps are short where what
grows as the square begins to show: what one tile holds takes as much work as one element."""

FAR_OUT = (67, 1031, 8209, 32_771)
"""Those with values that make sums, maxima and products as large as a check's kinds of values let them be."""

MOST_FAR = 3
"""Dimensions that are stretched with such values: those that are added up come first."""

OTHERS, MANY = (2, 130), 3
"""The other dimensions; where there are so many, they are short, and the outermost is 1. With short ones, a program
often has many elements of the long one; a single element would often be right by chance."""

MOST_ELEMENTS, MOST_WITH_GRADIENTS = 5 << 17, 1 << 18
"""Of the largest tensor, and where gradients are asked for: references take longest for large ones."""

AT_FIRST, LITTLE = 0.7, 32
"""The power of the length with which work is taken to grow from the first call on, most of which any call takes; one of
so many parts of it says nothing of how work grows."""

MOST_WORK, MOST_BEYOND = 60_000_000, 400_000_000
"""The work that is expected of a call, at most, and of one beyond a limit: see gradekit.engine.budget."""

LEAST_BEYOND, MOST_LIMITS = 512, 2
"""The least length beyond a limit that is worth it, and how many limits of a kernel are gone beyond: the largest."""


FarValues = Callable[[], Sequence[Mapping[str, Any]]]
"""Kinds of values, by what they are picked for; none once nothing is missing that they could reach."""


@dataclass
class LongDimensions:
    """Which dimensions have been stretched: by entry, name, and whether the backward pass was asked for; beyond limits,
    for each kind of values; and a little, for each kind of tensors that say where others are read, and of gradients for
    each `check`, since each may be about another gradient."""

    check: str = ""
    _done: set[tuple[Any, ...]] = field(default_factory=set)
    _made: dict[tuple[Any, ...], list[Stretch]] = field(default_factory=dict)

    def begun(
        self, draws: Draws, forms: Sequence[TracedForm], limits: Sequence[int] = (), far: FarValues = lambda: ()
    ) -> Iterator[Stretch]:
        """Those that are left of this check's calls: to some lengths, to twice the `limits` of kernels, and with the
        values that `far` gives, as long as it does. Each is to be run before the next is asked for."""
        mine = [one for one in forms if fits(draws, one) and one.elements]
        if not mine:
            return
        form = min(mine, key=lambda one: abs(rank_of(draws, one) - 1))  # with a dimension that has no name, if it may
        scope = CallScope(draws, rank_of(draws, form), True, FAR)
        for name in scope.sizes:
            beyond = [2 * n + 1 for n in limits if LEAST_BEYOND <= 2 * n < scope.range(name)[1]][-MOST_LIMITS:]
            if beyond and self._is_new(form, name, draws.values):
                yield Stretch(draws, form, scope, name, OTHERS[0], (*LENGTHS[:2], *beyond), MOST_BEYOND)
        for name in scope.sizes:
            yield from self._usual(draws, form, scope, name)
        wide = widest(draws, mine)
        for more in far() if wide is not None else ():
            if wide is not None and more in far():  # each size then: what is passed may show farther out alone
                yield from self._far(draws, wide, scope, more)

    def _usual(self, draws: Draws, form: TracedForm, scope: CallScope, name: str) -> Iterator[Stretch]:
        """Those of one dimension; with other choices as long as each so far was cut short or empty."""
        is_first, made = self._is_new(form, name), self._made.setdefault(_key(form, name), [])
        is_other = self._is_new(form, name, (_indices(draws), self.check if form.wanted else "")) and not is_first
        others = OTHERS if 1 < len(scope.sizes) <= MANY else OTHERS[:1]
        for other in others if is_first else ():
            made.append(Stretch(draws, form, scope, name, other))
            yield made[-1]
        for number, more in enumerate(_choices(draws)):
            is_new = self._is_new(form, name, more) and (number > 0 or not is_first)
            if is_new and all(one.is_cut_short or one.is_empty for one in made):
                made.append(Stretch(draws, form, scope, name, OTHERS[0], more=dict(more)))
                yield made[-1]
        longest = max([LENGTHS[0], *(one.reached for one in made)])
        if is_other:
            yield Stretch(draws, form, scope, name, OTHERS[0], [min(longest, LENGTHS[1])])

    def _far(self, draws: Draws, form: TracedForm, scope: CallScope, more: Mapping[str, Any]) -> Iterator[Stretch]:
        for name in sorted(scope.sizes, key=functools.partial(_outer, draws))[:MOST_FAR]:
            if self._is_new(form, name, tuple(more.items())):
                lengths = sorted({min(length, scope.range(name)[1]) for length in FAR_OUT})
                yield Stretch(draws, form, scope, name, OTHERS[0], lengths, more=more)

    def _is_new(self, form: TracedForm, name: str, values: Any = None) -> bool:
        key = *_key(form, name), values
        is_new = key not in self._done
        self._done.add(key)
        return is_new


def _key(form: TracedForm, name: str) -> tuple[str, str, bool]:
    return form.entry, name, bool(form.wanted)


def _indices(draws: Draws) -> tuple[Any, ...]:
    """The kinds of values of tensors that say where others are read, or how far."""
    known = {tensor.name for tensor in draws.tensors if tensor.range is not None}
    return tuple((names, options) for names, options in draws.values if known.intersection(names.split()))


def _choices(draws: Draws) -> Iterator[tuple[tuple[str, Any], ...]]:
    """What a check chooses beside sizes, dtypes, layouts and values, each as names with what they are."""
    for chosen in itertools.product(*(options for _, options in draws.choices)) if draws.choices else ():
        yield tuple(zip((name for name, _ in draws.choices), chosen, strict=True))


def _outer(draws: Draws, name: str) -> int:
    """How far out a dimension lies in the results: what is added up lies in none, or is the last of the inputs."""
    parts = [(place, part) for one in draws.entry.results for place, part in enumerate(reversed(one.shape), start=1)]
    return max((place for place, part in parts if name in part.split()), default=0)


@dataclass
class Stretch:
    """One dimension, beside others of size `other` where they may have it, with what is chosen beside sizes in `more`.
    `spent` is told the work of each call; `is_cut_short` says that it was too much early on, `is_empty` that a
    tensor has no elements."""

    draws: Draws
    form: TracedForm
    scope: CallScope
    name: str
    other: int
    lengths: Sequence[int] = LENGTHS
    most_work: int = MOST_WORK
    more: Mapping[str, Any] = field(default_factory=dict)
    is_cut_short: bool = False
    is_empty: bool = False
    _seen: list[tuple[int, int]] = field(default_factory=list)

    def next(self) -> FurtherCall | None:
        """The next call; None where it would be too large, or is beyond what is promised."""
        length = next((n for n in self.lengths if n > self.reached), None)
        least, most = self.scope.range(self.name)
        if length is None or not least <= length <= most:
            return None
        if len(self._seen) == 1 and self._expected(length) > self.most_work:
            length = min(length, LENGTHS[1])
        elif self._expected(length) > self.most_work:
            self.is_cut_short = self.reached < LENGTHS[3]
            return None
        sizes = {name: self._short(name) for name in self.scope.names} | {self.name: length}
        columns = {name: torch.tensor([n]) for name, n in sizes.items()}
        most = MOST_WITH_GRADIENTS if self.form.wanted else MOST_ELEMENTS
        if not bool(self.scope.allows(columns)) or float(self.scope.elements(columns)) > most:
            return None
        self._seen.append((length, 0))
        call = made(self.draws, self.form, sizes, 0, self.more)
        self.is_empty = any(isinstance(arg, Input) and not arg.numel for arg in call)
        return FurtherCall(call, f"{self.name} is {length:,}, the others {self.other}")

    @property
    def reached(self) -> int:
        """The longest that a call was made with."""
        return self._seen[-1][0] if self._seen else 0

    def _short(self, name: str) -> int:
        return self.scope.nearest(name, 1 if name == self._single else self.other)

    @functools.cached_property
    def _single(self) -> str:
        """Of many other dimensions, the outermost is 1: the rest are enough."""
        others = [name for name in self.scope.sizes if name != self.name]
        return max(others, key=functools.partial(_outer, self.draws)) if len(others) >= MANY else ""

    def spent(self, work: int) -> None:
        """The work of the last call."""
        self._seen[-1] = self._seen[-1][0], work

    def _expected(self, length: int) -> float:
        """Work beyond that of the first call grows as the length does, from the third call on as it has."""
        if len(self._seen) < 2:
            return sum(work * (length / n) ** AT_FIRST for n, work in self._seen)
        (_, base), *others = self._seen
        more = [(n, max(work - base, base // LITTLE, 1)) for n, work in others]
        last, work = more[-1]
        return float(base + work * (length / last) ** (_power(*more[-2:]) if len(more) > 1 else 1.0))


def _power(before: tuple[int, int], after: tuple[int, int]) -> float:
    return math.log(max(after[1] / before[1], 1)) / math.log(after[0] / before[0])
