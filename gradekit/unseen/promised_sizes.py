"""Calls as long as an entry promises, which nobody could run: what their programs leave out is told by counting.

Only the call is traced, without any tensor's memory; see `counted_lanes`. A tensor is left out only if it is
touched as a whole in a shorter call, by many tiles: a kernel that never touches all of it may be right.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gradekit.domain import ANY_DIMENSIONS, MOST_ELEMENTS
from gradekit.inputs.draws import Draws, shape_of
from gradekit.inputs.layouts import row_major
from gradekit.program import Program, View
from gradekit.unseen.counted_lanes import LeftOut, left_out, reaches
from gradekit.unseen.further import fits, rank_of
from gradekit.unseen.host_branches import TracedForm
from gradekit.unseen.scope import CallScope

SHORTEST = 4096
"""Dimensions that are promised no longer are tried as they are."""

OTHERS: Sequence[int | None] = (2, 129, None)
"""The other dimensions: short, so long that half of a tile is beyond them, and as long as they may be."""

SHORTER = ((1 << 23) + 9, (1 << 20) + 7, 65_537, 4099)
"""Lengths of which one has to show that the call touches a tensor as a whole, by MANY_TILES tiles or more."""

SHORT = (259, 67)

MANY_TILES = 32

AskProgram = Callable[[TracedForm], "Program | None"]
"""Traces a call; None where it fails."""


@dataclass(frozen=True)
class LongCall:
    """A call of these `sizes`: one dimension, `name`, is as long as may be, beside others as OTHERS has them."""

    draws: Draws
    form: TracedForm
    name: str
    other: int | None
    sizes: Mapping[str, int]

    @staticmethod
    def of(draws: Draws, form: TracedForm, name: str, other: int | None) -> LongCall:
        """The longest that is promised."""
        sizes = _sizes(draws, form, name, None, other)
        return LongCall(draws, stretched(draws, form, sizes), name, other, sizes)

    def shortage(self, ask: AskProgram) -> LeftOut | None:
        """What its programs leave out; None where that is nothing, or cannot be told."""
        program = ask(self.form)
        for one in left_out(program) if program is not None else ():
            if any(reaches(shorter, one.place, one.stored, MANY_TILES) for shorter in self._shorter(ask)):
                return one
        return None

    def growing(self) -> Iterator[TracedForm]:
        """The call with shorter lengths, each longer than the one before."""
        return map(self._of, reversed((*SHORTER, *SHORT)))

    def _shorter(self, ask: AskProgram) -> Iterator[Program]:
        forms = (self._of(length) for length in SHORTER if length < self.sizes[self.name])
        yield from (program for program in map(ask, forms) if program is not None)

    def _of(self, length: int) -> TracedForm:
        most = min(length, self.sizes[self.name])
        return stretched(self.draws, self.form, _sizes(self.draws, self.form, self.name, most, self.other or OTHERS[0]))

    @property
    def told(self) -> str:
        """Its sizes, in words."""
        return ", ".join(f"{name} = {size:,}" for name, size in self.sizes.items())

    def description(self, one: LeftOut) -> str:
        """As a sentence."""
        names = [argument.name for argument in self.draws.tensors]
        what = "the result" if one.stored else names[one.place] if one.place < len(names) else "an argument"
        touched, operations = ("stored", "stores") if one.stored else ("loaded", "loads")
        programs = f"all {one.tally.programs:,} programs" if one.tally.programs > 1 else "its one program"
        return (
            f"With {self.told}, {what} has {one.count:,} elements, and at most {one.tally.lanes or 0:,} of them can be "
            f"{touched}: so many lanes have the {operations} of {programs} together."
        )


@dataclass
class PromisedSizes:
    """Which calls have been looked at: by entry, shapes, dtypes, and whether the backward pass was asked for."""

    _done: set[tuple[Any, ...]] = field(default_factory=set)

    def calls(self, draws: Draws, forms: Sequence[TracedForm]) -> Iterator[LongCall]:
        """One for each dimension of this check's calls that is left."""
        form = next((one for one in forms if fits(draws, one) and one.elements), None)
        if form is None or any(view.storage != place for place, view in enumerate(form.views)):
            return
        own = form.entry, bool(form.wanted), tuple((view.dtype, len(view.shape)) for view in form.views)
        for name, other in itertools.product(CallScope(draws, rank_of(draws, form), True).sizes, OTHERS):
            if (*own, name, other) in self._done:
                continue
            call = LongCall.of(draws, form, name, other)
            key = *own, tuple(view.shape for view in call.form.views)
            is_new = key not in self._done and call.sizes[name] >= SHORTEST
            self._done |= {(*own, name, other), key}
            if is_new:
                yield call


def stretched(draws: Draws, form: TracedForm, sizes: Mapping[str, int]) -> TracedForm:
    """The call with these sizes, its tensors row by row in memory."""
    shapes = [shape_of(tensor, sizes, rank_of(draws, form)) for tensor in draws.tensors]
    views = [
        replace(view, shape=shape, stride=row_major(shape), offset=0)
        for view, shape in zip(form.views, shapes, strict=False)
    ]
    left = iter(views)
    args = tuple(next(left) if isinstance(arg, View) else arg for arg in form.args)
    return replace(form, key="", args=args, upstream=next(left, None))


def _sizes(draws: Draws, form: TracedForm, name: str, length: int | None, other: int | None) -> dict[str, int]:
    """Sizes with one of this length, or of the greatest that the entry promises, and all others short, or as great as
    that leaves room for."""
    scope = CallScope(draws, rank_of(draws, form), True)
    sizes = {one: scope.nearest(one, other or OTHERS[0] or 1) for one in scope.sizes}
    sizes[name] = length or _greatest(draws, form, sizes, name)
    for one in scope.sizes if other is None else ():
        if one != name and not scope.listed(one):
            sizes[one] = _greatest(draws, form, sizes, one)
    return {one: sizes[name] for one in draws.derive} | sizes


def _greatest(draws: Draws, form: TracedForm, sizes: Mapping[str, int], name: str) -> int:
    """The greatest that one size may be beside others; the entry promises no more elements of a tensor than
    MOST_ELEMENTS."""
    size = draws.entry.sizes[ANY_DIMENSIONS if name.startswith(ANY_DIMENSIONS) else name]
    least, most = sizes[name], sizes[name] if size.only else size.most
    while least < most:
        middle = (least + most + 1) // 2
        fits = _promised(draws, form, {**dict.fromkeys(draws.derive, middle), **sizes, name: middle})
        least, most = (middle, most) if fits else (least, middle - 1)
    return least


def _promised(draws: Draws, form: TracedForm, sizes: Mapping[str, int]) -> bool:
    named = {one: n for one, n in sizes.items() if not one.startswith(ANY_DIMENSIONS)}
    shapes = (shape_of(tensor, sizes, rank_of(draws, form)) for tensor in draws.tensors[: len(form.views)])
    return draws.entry.within(named) and max(map(math.prod, shapes)) <= MOST_ELEMENTS
