"""Calls as long as an entry promises, which nobody could run: what their programs leave out is told by counting.

Only the call is traced, without any tensor's memory. A tensor is left out only if it is
touched as a whole in a shorter call, by many tiles: a kernel that never touches all of it may be right.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from gradekit.domain import ANY_DIMENSIONS, MOST_ELEMENTS
from gradekit.engine import Op, Region
from gradekit.engine.def_use import ATOMICS, LOADS, STORES
from gradekit.engine.ttir import Function
from gradekit.inputs.draws import Draws, shape_of
from gradekit.inputs.layouts import row_major
from gradekit.program import (
    Choice,
    Descriptor,
    Fill,
    Launch,
    Program,
    Scalar,
    View,
    every_step,
    reads,
    run_steps,
    writes,
)
from gradekit.unseen.further import fits, rank_of
from gradekit.unseen.host_branches import TracedForm
from gradekit.unseen.kernel_branches import KernelText, Place, kernel_text, turns
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
    """Sizes with one of this length, or the greatest promised, all others short, or as great as may be."""
    scope = CallScope(draws, rank_of(draws, form), True)
    sizes = {one: scope.nearest(one, other or OTHERS[0] or 1) for one in scope.sizes}
    sizes[name] = length or _greatest(draws, form, sizes, name)
    for one in scope.sizes if other is None else ():
        if one != name and not scope.listed(one):
            sizes[one] = _greatest(draws, form, sizes, one)
    return {one: sizes[name] for one in draws.derive} | sizes


def _greatest(draws: Draws, form: TracedForm, sizes: Mapping[str, int], name: str) -> int:
    """The greatest that one size may be beside others, with no tensor of more than MOST_ELEMENTS."""
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


# --- elements that no program of a call can touch, told by counting ---------------------------------------------------
#
# The lanes of all loads or stores of a tensor, in all programs of its launches, are at least as many as the elements
# that they touch, whatever their addresses, masks and values are. Where a tensor has more elements, some are left
# out. So a grid that is cut off is found at sizes that nobody could run.

MOST_PROGRAMS = 1 << 22
"""Programs of a launch for each of which the turns of a loop are worked out."""


@dataclass(frozen=True)
class CountedAccess:
    """A load or store of a kernel: the names of the arguments that it may point into, None where that is not known; the
    lanes of one tile; the loops around it; and whether its address depends on what was loaded."""

    op: Op
    stores: bool
    roots: frozenset[str] | None
    lanes: int
    loops: tuple[Op, ...]
    by_data: bool


@dataclass(frozen=True)
class Tally:
    """At most so many `lanes` of so many tiles; None where no bound is known. `line` is that of the last launch."""

    lanes: int | None = 0
    tiles: int = 0
    programs: int = 0
    line: int | None = None


Tallies = dict[tuple[int, bool], Tally]
"""By storage, and whether it is stored to."""


@dataclass(frozen=True)
class LeftOut:
    """A tensor of a call whose elements cannot all be stored (or loaded): the result or argument number `place`."""

    place: int
    stored: bool
    count: int
    tally: Tally


def left_out(program: Program) -> list[LeftOut]:
    """The results of a call that cannot all be stored, and arguments that cannot all be loaded."""
    found: dict[tuple[int, bool], LeftOut] = {}
    for tallies in _runs(program):
        for one in _short(program, tallies):
            found.setdefault((one.place, one.stored), one)
    return list(found.values())


def reaches(program: Program, place: int, stored: bool, tiles: int) -> bool:
    """Whether the lanes are enough for all elements of this result or argument, and are those of so many tiles."""
    views: Sequence[Any] = program.results if stored else program.inputs
    view = views[place]
    tallies = [each.get((view.storage, stored), Tally()) for each in _runs(program)]
    return all(t.lanes is None or t.lanes >= view.numel for t in tallies) and all(t.tiles >= tiles for t in tallies)


def _short(program: Program, tallies: Tallies) -> Iterator[LeftOut]:
    for stored, views in ((True, program.results), (False, program.inputs)):
        for place, view in enumerate(views):
            if isinstance(view, View) and view.numel and (not stored or view.storage not in program.storages):
                tally = tallies.get((view.storage, stored), Tally())
                if tally.lanes is not None and tally.lanes < view.numel:
                    yield LeftOut(place, stored, view.numel, tally)


def _runs(program: Program) -> Iterator[Tallies]:
    """What each run of the call touches: one for each option of its choices."""
    most = max((len(step.options) for step in every_step(program.steps) if isinstance(step, Choice)), default=1)
    for option in range(max(most, 1)):
        found: Tallies = {}
        for step in run_steps(program.steps, option):
            _count(program, step, found)
        yield found


def _count(program: Program, step: Any, found: Tallies) -> None:
    if isinstance(step, Launch):
        _count_launch(program, step, found)
    elif not isinstance(step, Fill):
        found |= {(view.storage, stored): Tally(lanes=None)
                  for stored, views in ((False, reads(step)), (True, writes(step))) for view in views}  # fmt: skip


def _count_launch(program: Program, launch: Launch, found: Tallies) -> None:
    kernel = program.kernels[launch.kernel]
    text = kernel_text(kernel.name, kernel.unaligned, program.path)
    bound = _bound(text.module.entry, launch)
    storages = {name: value.storage for name, value in bound.items() if isinstance(value, View)}
    programs = EachProgram(launch.grid, {text.arguments[name]: n for name, n in bound.items() if type(n) is int})
    for access in accesses(text):
        times = None if access.by_data else programs.times(text, access.loops)
        roots = storages if access.roots is None else access.roots
        for storage in {storages[name] for name in roots if name in storages}:
            key = storage, access.stores
            found[key] = _more(found.get(key, Tally()), times, access.lanes, launch)


def _more(before: Tally, times: int | None, lanes: int, launch: Launch) -> Tally:
    line = launch.source.line if launch.source else None
    if times is None or before.lanes is None:
        return replace(before, lanes=None, line=line)
    programs = max(before.programs, math.prod(launch.grid))
    return Tally(before.lanes + times * lanes, before.tiles + times, programs, line)


def _bound(function: Function, launch: Launch) -> dict[str, Any]:
    """The views and whole numbers that a kernel gets, by the names of its arguments; see gradekit.engine.arguments."""
    values: list[Any] = []
    for argument in launch.args:
        if isinstance(argument, Descriptor):
            values += [argument.view, *argument.view.shape, *argument.view.stride]
            types = function.argument_types
            if len(values) > len(types) or types[len(values) - 1].element == "tensordesc":
                del values[-2 * len(argument.block) :]
        else:
            values.append(argument.value if isinstance(argument, Scalar) else argument)
    return dict(zip(function.arguments, values, strict=False))


# --- kernels ---------------------------------------------------------------------------------------------------------


class EachProgram:
    """All programs of a launch: what differs from lane to lane, or from turn to turn of a loop, has no value."""

    def __init__(self, grid: tuple[int, int, int], names: Mapping[str, int]) -> None:
        self._count = math.prod(grid)
        self._place = Place(grid, names, [_along(grid, axis) for axis in range(len(grid))])
        self._times: dict[tuple[int, ...], int | None] = {}

    def times(self, text: KernelText, loops: Sequence[Op]) -> int | None:
        """How often all programs together go through the innermost of these loops; None where that is not known."""
        key = tuple(op.number for op in loops)
        if key not in self._times:
            self._times[key] = self._counted(text, loops)
        return self._times[key]

    def _counted(self, text: KernelText, loops: Sequence[Op]) -> int | None:
        every: Any = 1
        for op in loops:
            operands, _ = self._place.values(text, op.number)
            known = op.name == "scf.for" and len(operands) > 2 and type(operands[2]) is int and operands[2] > 0
            each = turns(*operands[:3]) if known else None
            if each is None:
                return None
            every = every * each
        if isinstance(every, torch.Tensor):
            return int(every.sum()) * self._count // every.numel()
        return int(every * self._count)


def _along(grid: tuple[int, int, int], axis: int) -> Any:
    """The ids of programs along an axis, which has a dimension of its own; None of too many."""
    if grid[axis] == 1:
        return 0
    if math.prod(grid) > MOST_PROGRAMS:
        return None
    return torch.arange(grid[axis]).view([-1 if one == axis else 1 for one in range(len(grid))])


@functools.lru_cache(maxsize=256)
def accesses(text: KernelText) -> tuple[CountedAccess, ...]:
    """The loads and stores of a kernel; those of a function that is called may be in any loop, and have no bound."""
    entry = text.module.entry
    found = [*_in(text, entry.body, ())]
    for function in text.module.functions.values():
        if function is not entry:
            found += [replace(one, roots=None, by_data=True) for one in _in(text, function.body, ())]
    return tuple(found)


def _in(text: KernelText, region: Region, loops: tuple[Op, ...]) -> Iterator[CountedAccess]:
    for block in region.blocks:
        for op in block.ops:
            if op.name in LOADS | STORES | ATOMICS:
                yield from _accessed(text, op, loops)
            around = (*loops, op) if op.name in ("scf.for", "scf.while") else loops
            for inner in op.regions:
                yield from _in(text, inner, around)


def _accessed(text: KernelText, op: Op, loops: tuple[Op, ...]) -> Iterator[CountedAccess]:
    roots, by_data = _roots(text, op.operands[0])
    type = op.result_types[0] if op.name in LOADS else op.operand_types[1]
    indices = op.operands[1:] if op.name.startswith("tt.descriptor") else ()
    by_data = by_data or any(_roots(text, name)[1] for name in indices)
    for stores in (True, False):
        if op.name in ATOMICS or stores == (op.name in STORES):
            yield CountedAccess(op, stores, roots, math.prod(type.shape), loops, by_data)


def _roots(text: KernelText, name: str) -> tuple[frozenset[str] | None, bool]:
    """The arguments that a pointer may point into, None where that is not known; whether what was loaded has a part."""
    pointers = text.flow.behind([name], sources=text.flow.pointed)
    ends = {one for one in pointers if not text.flow.pointed(one)}
    known = bool(ends) and all(one in text.arguments for one in ends)
    return (frozenset(ends) if known else None), not text.computed_from([name]).isdisjoint(LOADS | ATOMICS)
