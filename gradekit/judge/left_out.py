"""Which part of a program leaves elements out that it must write or read: the failing call runs again, and who has
their addresses shows it. What no run bears out is not said.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gradekit.causes import Cause
from gradekit.engine.executor import option_count
from gradekit.engine.explain import Namer
from gradekit.engine.frame import Frame, LaunchContext, Observe
from gradekit.engine.memory import Memory, strided
from gradekit.engine.observer import coordinates
from gradekit.engine.ttir import Op
from gradekit.judge.accesses import Access, Accesses, places
from gradekit.judge.by_running import ran
from gradekit.judge.comparison import Comparison
from gradekit.judge.evidence import Diagnosis, nouns, same
from gradekit.program import ITEMSIZE, Aten, Copy, Fill, Launch, Literal, Program, View, every_step, run_steps


def places_of(view: View) -> Tensor:
    """Where the elements of a view lie, in its shape."""
    return strided(torch.arange(view.reach), view.shape, view.stride, view.offset)


def unwritten(program: Program, inputs: Sequence[Tensor], allow: Collection[str]) -> tuple[int, str] | None:
    """Why elements of a result are never written, with a line; None where kernels do not store to it
    themselves, or all are."""
    on_host = (one.target.storage for one in every_step(program.steps) if isinstance(one, (Copy, Fill, Literal)))
    views = [one for one in program.results if isinstance(one, View) and one.storage not in {*on_host}]
    for option in range(option_count(program)):
        if not ran(program, inputs, allow, seen := Accesses(), option):
            return None
        for view in views:
            found = _told(program, option, view, inputs, allow, seen, stores=True)
            if found is not None:
                return found
    return None


def _told(
    program: Program, option: int, view: View, inputs: Sequence[Tensor], allow: Collection[str], seen: Accesses, *,
    stores: bool,
) -> tuple[int, str] | None:  # fmt: skip
    """The line that has the addresses of a view's elements, where just one of one launch does, and who has those that
    are left out in a run with one `option`: nobody, two lanes another one, and programs store nothing."""
    accesses, every = (seen.stores if stores else seen.loads).get(view.storage, []), places_of(view).unique()
    missing, lines = every[~torch.isin(every, places(accesses))], {(one.line, one.launch) for one in accesses}
    if not missing.numel() or len(lines) != 1:
        return None
    ((line, launch),) = lines
    launches = [one for one in run_steps(program.steps, option) if isinstance(one, Launch)]
    grid = launches[launch].grid
    programs, aims, active, turns = (torch.cat(lanes) for lanes in zip(*(one.lanes for one in accesses), strict=True))
    is_element = torch.isin(aims, every)
    named = lambda place: list(Namer(program, ()).element(view.storage, int(place), ITEMSIZE[view.dtype]))
    parts = list[str]()
    if not bool((aims == missing[0]).any()):  # else a mask stops one that has it, past the end of a row, say
        parts.append(f"line {line} has the address of {named(missing[0])} in no lane, masked or not")
    place, lanes = _shared(aims, active & is_element, stores)
    if lanes:
        lanes.sort(key=lambda at: int(programs[at]))
        two = [(coordinates(int(programs[at]), grid), int(turns[at])) for at in lanes]
        parts.append(_of_two(accesses, two, named(place)))
        ran(program, inputs, allow, alike := _Alike(launch, *programs[lanes].tolist()), option)
        parts += [f"both have the same number from line {alike.line} on"] if stores and alike.line else []
    elif loop := next((one.loop for one in accesses if one.loop), None):
        parts.append(f"steps of the loop in line {loop[0]}: {int(turns.max())} at most")
    idle = sorted({*range(math.prod(grid))} - {*programs[active & is_element].tolist()})
    parts += [f"program {coordinates(idle[0], grid)} stores nothing to the result"] if stores and idle else []
    return line, "; ".join(parts)


@dataclass
class _Alike:
    """An observer of a launch: the first line in which a whole number becomes the same in two programs, of others."""

    number: int
    one: int
    other: int
    line: int = 0

    def launch(self, context: LaunchContext, memory: Memory) -> Observe | None:
        """A launch begins."""
        return self._note if context.launch == self.number and self.one != self.other else None

    def _note(self, frame: Frame, op: Op) -> None:
        programs = frame.programs().tolist()
        is_whole = op.name.startswith("arith.") and {type.element for type in op.result_types} <= {"i32", "i64"}
        if is_whole and not self.line and {self.one, self.other} <= {*programs}:
            at = programs.index(self.one), programs.index(self.other)
            is_same = lambda name, type: torch.equal(*(frame.tile(name, type, place) for place in at))
            results, operands = (op.results, op.result_types), (op.operands, op.operand_types)
            if all(map(is_same, *results)) and not all(map(is_same, *operands)):
                self.line = frame.context.line(op) or 0


def _shared(aims: Tensor, active: Tensor, stores: bool) -> tuple[int, list[int]]:
    """The first place at which several active lanes aim, and two of these; none where all places are loaded often."""
    places, often = aims[active].unique(return_counts=True)
    again = places[often > 1]
    if not again.numel() or (not stores and again.numel() == places.numel()):
        return 0, []
    return int(again[0]), ((aims == again[0]) & active).nonzero().flatten()[:2].tolist()


def _of_two(accesses: Sequence[Access], lanes: Sequence[tuple[tuple[int, int, int], int]], name: list[int]) -> str:
    """That two lanes have one address, by the program and the turn of each."""
    ((one, first), (other, second)), loop = lanes, next((each.loop for each in accesses if each.loop), None)
    if one == other:
        return f"program {one} has the address of {name} twice"
    if loop is not None:
        step = f"step {first} of the loop in line {loop[0]}"
        return f"program {one} has the address of {name} in {step}, and program {other} in step {second}"
    return f"programs {one} and {other} both have the address of {name}"


# --- what is never read, on which what is wrong depends ---------------------------------------------------------------


def never_read(
    program: Program, inputs: Sequence[Tensor], comparison: Comparison | None, allow: Collection[str],
    names: Sequence[str],
) -> Diagnosis | None:  # fmt: skip
    """Which part of an input no kernel reads, where the right result changes with it wherever the result is wrong; None
    where there is none. `names` are those of the inputs. With it stands who has the addresses of the others."""
    if comparison is None or [one.shape for one in comparison.reference.inputs] != [one.shape for one in inputs]:
        return None
    seen = Accesses()
    if any(isinstance(step, Aten) for step in every_step(program.steps)) or not ran(program, inputs, allow, seen):
        return None
    for place, (view, unread) in enumerate(zip(program.inputs, _unread(program, seen), strict=True)):
        if not bool(unread.any()) or not _tells(comparison, place, unread):
            continue
        sentence = _part_that_is_read(unread, names[place])
        is_direct = view.storage in seen.loads  # and not read from a copy
        why = _told(program, 0, view, inputs, allow, seen, stores=False) if is_direct else None
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


def _unread(program: Program, seen: Accesses) -> list[Tensor]:
    """The elements of each input that no lane loads, from it or from a copy; none of an input that is changed."""
    read, steps = dict[int, list[Tensor]](), list(every_step(program.steps))
    loaded = lambda storage: places(seen.loads.get(storage, []))
    of = lambda view: torch.isin(places_of(view), torch.cat([loaded(view.storage), *read.get(view.storage, ())]))
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
