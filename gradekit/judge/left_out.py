"""Which part of a program leaves elements out that it must write or read: the failing call runs again, and who has
their addresses shows it. What no run bears out is not said.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence

import torch
from torch import Tensor

from gradekit.causes import Cause
from gradekit.engine.executor import option_count
from gradekit.engine.explain import Namer
from gradekit.engine.memory import strided
from gradekit.engine.observer import coordinates
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
            found = _told(program, option, view, seen, stores=True)
            if found is not None:
                return found
    return None


def _told(program: Program, option: int, view: View, seen: Accesses, *, stores: bool) -> tuple[int, str] | None:
    """Who has the addresses of what is left out of a view, in a run with one `option`: lanes that a mask stops,
    programs that never come to the line where they would be, or nobody. None where none is left out, or where not just
    one line of one launch has others."""
    accesses, every = (seen.stores if stores else seen.loads).get(view.storage, []), places_of(view).unique()
    missing, lines = every[~torch.isin(every, places(accesses))], {(one.line, one.launch) for one in accesses}
    if not missing.numel() or len(lines) != 1:
        return None
    ((line, launch),) = lines
    launches = [one for one in run_steps(program.steps, option) if isinstance(one, Launch)]
    grid = launches[launch].grid
    programs, aims, active, turns = (torch.cat(lanes) for lanes in zip(*(one.lanes for one in accesses), strict=True))
    is_element = torch.isin(aims, every)
    absent = sorted({*range(math.prod(grid))} - {*programs.tolist()})
    each = max(programs[active & is_element].unique(return_counts=True)[1].tolist(), default=missing.numel())
    if torch.equal(aims[~active & is_element].sort()[0], missing):  # each of them in one lane
        return line, f"line {line} has their addresses in some lanes, and its mask is False in just these"
    if (len(absent) - 1) * each < missing.numel() <= len(absent) * each:  # as much as these would reach
        none = f"program {coordinates(absent[0], grid)} never comes to line {line}"
        several = f"{len(absent)} of {math.prod(grid)} programs never come to line {line}"
        return line, none if len(absent) == 1 else several
    named = lambda place: list(Namer(program, ()).element(view.storage, int(place), ITEMSIZE[view.dtype]))
    parts = list[str]()
    if not bool((aims == missing[0]).any()):  # else a mask stops one that has it, past the end of a row, say
        parts.append(f"line {line} has the address of {named(missing[0])} in no lane, masked or not")
    place, lanes = _shared(aims, active & is_element)
    if lanes:
        two = [(coordinates(int(programs[at]), grid), int(turns[at])) for at in lanes]
        parts.append(_of_two(accesses, two, named(place)))
    idle = sorted({*range(math.prod(grid))} - {*programs[active & is_element].tolist()})
    parts += [f"program {coordinates(idle[0], grid)} stores nothing to the result"] if stores and idle else []
    return line, "; ".join(parts)


def _shared(aims: Tensor, active: Tensor) -> tuple[int, list[int]]:
    """The first place at which several active lanes aim, and two of these; none where no place has one alone."""
    places, often = aims[active].unique(return_counts=True)
    again = places[often > 1]
    if not 0 < again.numel() < places.numel():
        return 0, []
    return int(again[0]), ((aims == again[0]) & active).nonzero().flatten()[:2].tolist()


def _of_two(accesses: Sequence[Access], lanes: Sequence[tuple[tuple[int, int, int], int]], name: list[int]) -> str:
    """That two lanes have one address, by the program and the turn of each."""
    ((one, first), (other, second)), loop = lanes, next((each.loop for each in accesses if each.loop), None)
    if loop is not None:
        step = f"step {first} of the loop in line {loop[0]}"
        return f"program {one} has the address of {name} in {step}, and program {other} in step {second}"
    alone = f"program {one} has the address of {name} in two lanes"
    return alone if one == other else f"programs {one} and {other} both have the address of {name}"


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
        why = _told(program, 0, view, seen, stores=False) if is_direct else None
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
