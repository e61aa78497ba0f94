"""Which part of a program leaves elements out that it must write or read: the grid, a mask, a loop that takes no step
for them, or the address. The failing call runs again and shows it; what no run bears out is not said.
"""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from torch import Tensor

from gradekit.causes import Cause
from gradekit.engine.budget import OverBudget
from gradekit.engine.executor import option_count
from gradekit.engine.explain import Namer
from gradekit.engine.frame import Frame, LaunchContext, Observe
from gradekit.engine.memory import Memory, strided
from gradekit.engine.observer import coordinates, touched
from gradekit.engine.ttir import Op
from gradekit.engine.ttir_locations import line_of
from gradekit.judge.by_running import ran
from gradekit.judge.by_text import tile_without_loop
from gradekit.judge.comparison import Comparison
from gradekit.judge.evidence import Diagnosis, nouns, operations_of, same
from gradekit.program import ITEMSIZE, Aten, Copy, Fill, Launch, Literal, Program, View, every_step, replaced, run_steps
from gradekit.source.draft import grid_lines
from gradekit.submission.parsed_source import ParsedSource

_MOST_TIMES, _MOST_PROGRAMS = 64, 1 << 14
"""A grid is tried with up to so many times as many programs along an axis, and with so many in all."""
_MOST_LANES = 1 << 22  # 17 bytes are kept of each


@dataclass
class Aims:
    """An observer: by storage, line and launch, at which places the lanes of its loads aim, or of its stores, in which
    programs, and whether a mask lets them: int64 [2, lanes], bool [lanes]. Raises OverBudget for too many lanes."""

    stores: bool
    seen: dict[int, dict[tuple[int, int], list[tuple[Tensor, Tensor]]]] = field(default_factory=dict)
    kept: int = 0

    def launch(self, context: LaunchContext, memory: Memory) -> Observe:
        """A launch begins; with launch 0, everything does."""
        if context.launch == 0:
            self.seen.clear()
            self.kept = 0

        def note(frame: Frame, op: Op) -> None:
            found = touched(frame, op, memory)
            writes = not op.results or op.name.startswith("tt.atomic")
            if found is not None and found.storage is not None and writes is self.stores:
                lanes = torch.stack([frame.programs().view(-1, 1).expand_as(found.index), found.index]).flatten(1)
                at, self.kept = (context.line(op) or 0, context.launch), self.kept + lanes.shape[1]
                if self.kept > _MOST_LANES:
                    raise OverBudget("lanes", _MOST_LANES)
                self.seen.setdefault(found.storage.id, {}).setdefault(at, []).append((lanes, found.active.flatten()))

        return note

    def places(self, storage: int) -> Tensor:
        """The places of a storage that a lane touches, in order."""
        lanes = itertools.chain.from_iterable(self.seen.get(storage, {}).values())
        return torch.cat([one[1, active] for one, active in lanes] or [torch.empty(0, dtype=torch.int64)]).unique()


def places_of(view: View) -> Tensor:
    """Where the elements of a view lie, in its shape."""
    return strided(torch.arange(view.reach), view.shape, view.stride, view.offset)


@dataclass(frozen=True)
class _Run:
    """A run of a `program` with one `option`, in which elements of a view are left out, and what it was given."""

    program: Program
    inputs: Sequence[Tensor]
    allow: Collection[str]
    option: int
    view: View
    aims: Aims

    @cached_property
    def missing(self) -> Tensor:
        """The places that are left out."""
        every = places_of(self.view).unique()
        return every[~torch.isin(every, self.aims.places(self.view.storage))]

    @property
    def lines(self) -> Mapping[tuple[int, int], Sequence[tuple[Tensor, Tensor]]]:
        """What was seen of the view's storage, by line and launch."""
        return self.aims.seen.get(self.view.storage, {})

    @cached_property
    def launched(self) -> Launch:
        """The launch whose lanes aim there."""
        launches = (one for one in run_steps(self.program.steps, self.option) if isinstance(one, Launch))
        return next(itertools.islice(launches, next(launch for _, launch in self.lines), None))

    def reaching(self, places: Tensor) -> Tensor:
        """The program and the place of each lane that touches one of these places: int64 [2, lanes]."""
        every = [lanes[:, active] for seen in self.lines.values() for lanes, active in seen]
        lanes = torch.cat([*every, torch.empty(2, 0, dtype=torch.int64)], dim=1)
        return lanes[:, torch.isin(lanes[1], places)]

    def goes_on_from(self, run: _Run) -> bool:
        """Whether the programs of another run, with a smaller grid, do here what they did there, and no lane that a
        mask lets through leaves the view."""
        (x, y, _), (wide, high, _) = run.launched.grid, self.launched.grid
        before, now = run.reaching(places_of(run.view)), self.reaching(places_of(self.view))
        moved = before[0] % x + wide * (before[0] // x % y + high * (before[0] // (x * y)))
        mine = torch.isin(now[0], moved)
        size, places = self.view.reach, self.aims.places(self.view.storage)
        is_same = torch.equal((moved * size + before[1]).sort()[0], (now[0] * size + now[1])[mine].sort()[0])
        return is_same and bool(torch.isin(places, places_of(self.view)).all())

    def with_grid(self, grid: tuple[int, int, int]) -> _Run | None:
        """The same with another grid; None where that cannot be run."""
        launch, aims = self.launched, Aims(self.aims.stores)
        other = lambda part: replace(launch, grid=grid) if part == launch else None
        program = replace(self.program, steps=replaced(self.program.steps, other))
        has_run = ran(program, self.inputs, self.allow, aims, self.option)
        return replace(self, program=program, aims=aims) if has_run else None

    def named(self, place: Tensor) -> list[int]:
        """The index of the element at a place."""
        return list(Namer(self.program, ()).element(self.view.storage, int(place), ITEMSIZE[self.view.dtype]))


def unwritten(program: Program, inputs: Sequence[Tensor], allow: Collection[str], text: str) -> tuple[int, str] | None:
    """Why elements of a result are never written, with a line of the `text`; None where kernels do not store to it
    themselves, or all are."""
    on_host = (one.target.storage for one in every_step(program.steps) if isinstance(one, (Copy, Fill, Literal)))
    views = [one for one in program.results if isinstance(one, View) and one.storage not in {*on_host}]
    for option in range(option_count(program)):
        if not ran(program, inputs, allow, aims := Aims(stores=True), option):
            return None
        for view in views:
            found = _why(_Run(program, inputs, allow, option, view, aims), text)
            if found is not None:
                return found
    return None


def _why(run: _Run, text: str) -> tuple[int, str] | None:
    """The part of a run that leaves elements out, as a line and a hint; None where none are, or several launches
    could reach them."""
    if not run.missing.numel() or len({launch for _, launch in run.lines}) > 1:
        return None
    if not run.lines:
        return _no_program_comes(run, text)
    ways = (way(run, text) for way in (_grid, _mask, _never_there, _address))
    return next(filter(None, ways), None)


def _grid(run: _Run, text: str) -> tuple[int, str] | None:
    """More programs reach all that is left out and nothing else, where each that there is has elements of its own."""
    launch, lanes = run.launched, run.reaching(places_of(run.view))
    is_shared = run.aims.stores and lanes[1].unique().numel() < lanes.shape[1]
    if is_shared or lanes[0].unique().numel() < math.prod(launch.grid) or launch.source is None:
        return None
    for axis, times in itertools.product(range(3), (2, _MOST_TIMES)):
        x, y, z = (size * (times if at == axis else 1) for at, size in enumerate(launch.grid))
        more = x, y, z
        grown = run.with_grid(more) if math.prod(more) <= _MOST_PROGRAMS else None
        if grown is not None and not grown.missing.numel() and grown.goes_on_from(run):
            last = max(coordinates(one, more)[axis] for one in grown.reaching(run.missing)[0].tolist())
            says = f"with {last + 1} programs along axis {axis} in place of {launch.grid[axis]}, none is left out"
            return grid_lines(text).get(launch.source.line, launch.source.line), says
    return None


def _mask(run: _Run, text: str) -> tuple[int, str] | None:
    """Lanes aim at all that is left out, and a mask stops just these of all that aim at elements."""
    for (line, _), seen in run.lines.items():
        stopped = torch.cat([lanes[1, ~active] for lanes, active in seen]).unique()
        if torch.equal(stopped[torch.isin(stopped, places_of(run.view))], run.missing):
            return line, f"line {line} has their addresses in some lanes, and its mask is False in just these"
    return None


def _never_there(run: _Run, text: str) -> tuple[int, str] | None:
    """Programs never come to the one line, and as much is left out as these would reach."""
    (((line, _), seen), *more), grid = run.lines.items(), run.launched.grid
    came, reaching = torch.cat([lanes[0] for lanes, _ in seen]).unique(), run.reaching(places_of(run.view))
    absent = sorted({*range(math.prod(grid))} - {*came.tolist()})
    each = int(reaching[0].unique(return_counts=True)[1].max()) if reaching.numel() else run.missing.numel()
    if more or not (len(absent) - 1) * each < run.missing.numel() <= len(absent) * each:
        return None
    says = f"program {coordinates(absent[0], grid)} never comes to line {line}"
    if len(absent) > 1:
        says = f"{len(absent)} of {math.prod(grid)} programs never come to line {line}"
    return line, _inside(says, line, text)


def _no_program_comes(run: _Run, text: str) -> tuple[int, str] | None:
    kinds = ("tt.store", "tt.descriptor_store", "tt.atomic") if run.aims.stores else ("tt.load", "tt.descriptor_load")
    ops = (op for op in operations_of(run.program) if op.name.startswith(kinds))
    lines = {line_of(op.location, run.program.path) for op in ops}
    line = lines.pop() if len(lines) == 1 else None
    if line in {at for of in run.aims.seen.values() for at, _ in of}:
        return None
    return (line, _inside(f"no program comes to line {line}", line, text)) if line else None


def _inside(says: str, line: int, text: str) -> str:
    """What is said of a line of a kernel, and in which loop, or under which condition, it stands."""
    source = ParsedSource.parsed(text)
    blocks = (ast.For, ast.While, ast.If)
    every = source.in_kernels if source is not None else ()
    around = [one for one in every if isinstance(one, blocks) and one.lineno < line <= (one.end_lineno or 0)]
    if not around:
        return says
    inner = max(around, key=lambda one: one.lineno)
    where = f"it stands in the loop of line {inner.lineno}"
    if isinstance(inner, ast.If):
        where = f"it stands under the condition of line {inner.lineno}"
    return f"{says}; {where}"


def _address(run: _Run, text: str) -> tuple[int, str] | None:
    """No lane that the mask of the one line lets through has the first of the addresses."""
    ((line, _), seen), *more = run.lines.items()
    aims, grid = torch.cat([lanes[1] for lanes, _ in seen]), run.launched.grid
    if more:
        return None
    said = [f"line {line} has the address of {run.named(run.missing[0])} in no lane, masked or not"]
    if bool((aims == run.missing[0]).any()):
        said = [f"line {line} has the address of {run.named(run.missing[0])} only where its mask is False"]
    lanes = run.reaching(places_of(run.view))
    idle = sorted({*range(math.prod(grid))} - {*lanes[0].tolist()})
    places, often = lanes[1].unique(return_counts=True)
    again = places[often > 1]
    if 0 < again.numel() < places.numel():
        said += [f"{int(often[often > 1][0])} lanes have that of {run.named(again[0])}"]
    if run.aims.stores and idle:
        said += [f"program {coordinates(idle[0], grid)} stores nothing to the result"]
    return line, "; ".join(said)


# --- what is never read, on which what is wrong depends ---------------------------------------------------------------


def never_read(
    program: Program, inputs: Sequence[Tensor], comparison: Comparison | None, allow: Collection[str],
    names: Sequence[str], text: str = "",
) -> Diagnosis | None:  # fmt: skip
    """Which part of an input no kernel reads, where the right result changes with it wherever the result is wrong; None
    where there is none. `names` are those of the inputs. Where as many are read as a tile has elements, and by the
    `text` no loop goes on behind it, that is told; else which part of the program leaves the others out."""
    if comparison is None or [one.shape for one in comparison.reference.inputs] != [one.shape for one in inputs]:
        return None
    aims = Aims(stores=False)
    if any(isinstance(step, Aten) for step in every_step(program.steps)) or not ran(program, inputs, allow, aims):
        return None
    for place, (view, unread) in enumerate(zip(program.inputs, _unread(program, aims), strict=True)):
        if not bool(unread.any()) or not _tells(comparison, place, unread):
            continue
        sentence = _part_that_is_read(unread, names[place])
        counts = (first for _, first in _read_first(unread))
        if short := next(filter(None, (tile_without_loop(text, program, count) for count in counts)), None):
            sentence += f" No loop of {short[0].name} goes on behind the tile in line {short[1]}."
            return Diagnosis(Cause.WRONG_VALUES, sentence, short[1], "walk along in a loop, a tile in each step")
        is_direct = view.storage in aims.seen  # and not read from a copy
        why = _why(_Run(program, inputs, allow, 0, view, aims), text) if is_direct else None
        return Diagnosis(Cause.WRONG_VALUES, sentence, *(why or ()))
    return None


def _tells(comparison: Comparison, place: int, unread: Tensor) -> bool:
    """Whether all that is wrong is so where the right result changes with these elements of an input."""
    others, right = list(comparison.reference.inputs), comparison.reference.exact.double()
    one = others[place]
    another = one + one.abs() + 1 if one.is_floating_point() else one.flatten().roll(1).view(one.shape)
    others[place] = torch.where(unread, another, one)
    try:
        changed = comparison.reference.again(others).double()
    except (RuntimeError, ValueError, IndexError):  # the reference does not take such inputs
        return False
    if changed.shape != right.shape or not bool(comparison.wrong.any()):
        return False
    return not bool((comparison.wrong & same(changed, right, comparison.reference.allowance)).any())


def _unread(program: Program, aims: Aims) -> list[Tensor]:
    """The elements of each input that no lane loads, from it or from a copy; none of an input that is changed."""
    read, steps = dict[int, list[Tensor]](), list(every_step(program.steps))
    of = lambda view: torch.isin(places_of(view), torch.cat([aims.places(view.storage), *read.get(view.storage, ())]))
    for step in (one for one in reversed(steps) if isinstance(one, Copy) and one.origin.shape == one.target.shape):
        read.setdefault(step.origin.storage, []).append(places_of(step.origin)[of(step.target)])
    changed = {one.storage for one in program.results if isinstance(one, View)}
    return [~of(one) & (one.storage not in changed) for one in program.inputs]


def _read_first(unread: Tensor) -> Iterator[tuple[int, int]]:
    """Each dimension along which only the first places are read, all of these, with their number."""
    for dimension in range(unread.dim()):
        gone = unread.transpose(0, dimension).reshape(unread.shape[dimension], -1).all(1)
        first = int((~gone).sum())
        is_all = int(unread.sum()) * gone.numel() == int(gone.sum()) * unread.numel()
        if 0 < first < gone.numel() and is_all and bool(gone[first:].all()):
            yield dimension, first


def _part_that_is_read(unread: Tensor, name: str) -> str:
    """What is never read, in words: all rows or columns from one on, where these are they."""
    for along, first in _read_first(unread):
        return f"Only the first {first} of {unread.shape[along]} {nouns(unread.dim())[along]} of {name} are read."
    return f"{int(unread.sum())} of {unread.numel()} elements of {name} are never read."
