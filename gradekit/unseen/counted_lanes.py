"""Elements of tensors that no program of a call can touch, told by counting.

The lanes of all loads or stores of a tensor, in all programs of its launches, are at least as many as the elements that
they touch, whatever their addresses, masks and values are. Where a tensor has more elements, some are left out. So a
grid that is cut off is found at sizes that nobody could run. Pure, nothing is run here.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from gradekit.engine import Op, Region
from gradekit.engine.def_use import ATOMICS, LOADS, STORES
from gradekit.engine.ttir import Function
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
from gradekit.unseen.kernel_branches import KernelText, kernel_text
from gradekit.unseen.kernel_values import Place, turns

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
    """The ids of programs: a dimension for each axis, so that what depends on one alone is worked out once for all
    programs along the others; 0 along one that has one program."""
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
    """The arguments that a pointer may point into, None where that is not known; and whether anything that was loaded
    has a part in it."""
    pointers = text.flow.behind([name], sources=text.flow.pointed)
    ends = {one for one in pointers if not text.flow.pointed(one)}
    known = bool(ends) and all(one in text.arguments for one in ends)
    return (frozenset(ends) if known else None), not text.computed_from([name]).isdisjoint(LOADS | ATOMICS)
