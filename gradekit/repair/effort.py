"""How much the kernels of a call do: steps of loops, loads and stores. An edit may make results right because a loop
ends early, or because work is repeated or wasted; it then hides the mistake, and does not repair it."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import torch
from torch import Tensor

from gradekit.judge.accesses import Accesses, places
from gradekit.judge.by_running import ran
from gradekit.program import Launch, Program, Scalar, View, every_step, reads

MORE_LOADS = 1.1
"""Times as many as others: of two edits that seem right, the one that loads so many does more than is needed."""


@dataclass(frozen=True)
class KernelLaunch:
    """A launch of a kernel: the numbers that it is `given`, its whole compile-time constants, and its grid."""

    kernel: str
    given: tuple[Any, ...]
    constants: frozenset[tuple[str, int]]
    grid: tuple[int, int, int]


@dataclass
class Effort:
    """What so many `runs` did: by line of a loop, the most `turns` of one program in any; how many elements are
    `stored` and `loaded`, how many different ones, and how many are never loaded of a storage that others are loaded
    of and that is no result; the `storing` lines; each of its `launches`. Of what atomics add, how much is not counted:
    each program may add to it. An example `is_wrong` that raises."""

    turns: Counter[int] = field(default_factory=Counter)
    stored: int = 0
    loaded: int = 0
    stored_once: int = 0
    loaded_once: int = 0
    unread: int = 0
    runs: int = 0
    is_wrong: bool = False
    storing: set[int] = field(default_factory=set)
    launches: set[KernelLaunch] = field(default_factory=set)

    def add(self, program: Program, inputs: Sequence[Tensor], allow: Collection[str]) -> None:
        """Adds a run of a program; one that does not come to its end does not count."""
        self.runs += ran(program, inputs, allow, seen := Accesses())
        self.turns |= seen.turns
        self.storing |= {one.line for each in seen.stores.values() for one in each if bool(one.active.any())}
        for launch in program.launches():
            kernel = program.kernels[launch.kernel]
            whole = frozenset((name, value) for name, value in kernel.constants.items() if type(value) is int)
            given = tuple(one.value for one in launch.args if isinstance(one, Scalar))
            self.launches.add(KernelLaunch(kernel.name, given, whole, launch.grid))
        on_host = (one for step in every_step(program.steps) if not isinstance(step, Launch) for one in reads(step))
        shown = {one.storage for one in (*program.results, *program.inputs, *on_host) if isinstance(one, View)}
        ways = seen.loads, seen.stores
        once = [{of: places(accesses) for of, accesses in way.items()} for way in ways]
        atomics = set.intersection(*({one for each in way.values() for one in each} for way in ways))
        plain = [[[*filter(lambda one: one not in atomics, each)] for each in way.values()] for way in ways]
        every = [sum(int(one.active.sum()) for each in way for one in each) for way in plain]
        different = [sum(places(each).numel() for each in way) for way in plain]
        self.loaded, self.loaded_once = self.loaded + every[0], self.loaded_once + different[0]
        self.stored, self.stored_once = self.stored + every[1], self.stored_once + different[1]
        for storage in once[1].keys() & once[0].keys() - shown:  # what nothing loads at all is kept for another call
            self.unread += int((~torch.isin(once[1][storage], once[0][storage])).sum())


def _together(every: Iterable[Effort]) -> Effort:
    found = Effort()
    for one, name in ((one, each.name) for one in every for each in fields(Effort)):
        ours, theirs = getattr(found, name), getattr(one, name)
        setattr(found, name, ours + theirs if isinstance(ours, int) else ours | theirs)
    return found


def hides_mistake(each: Sequence[tuple[Effort, Effort]], but: Collection[int]) -> bool:
    """Whether an edit that makes results right only hides the mistake, by what kernels did before it and do after it in
    each of some examples, `but` for these lines, which it changes: a loop has one step at most in each program that had
    several, a line stores nothing any more, tiles have another size, what is stored nobody loads, or the same elements
    are stored or loaded once more. Examples that came to no end tell nothing, and how much is done is compared where
    all have."""
    ended = [pair for pair in each if pair[0].runs == pair[1].runs]
    before, after = (_together(pair[place] for pair in ended) for place in (0, 1))
    idle = before.storing - after.storing - {*but}
    if idle or len(ended) < len(each):
        return bool(idle)
    turns = ((line, most) for line, most in before.turns.items() if line not in but)
    stores, loads = after.stored / max(before.stored, 1), after.loaded / max(before.loaded, 1)
    is_once = before.loaded <= MORE_LOADS * before.loaded_once  # each element, about
    has_new = after.loaded_once > before.loaded_once or after.stored > before.stored
    return (
        any(most > 1 >= after.turns[line] for line, most in turns)
        or any(_in_other_tiles(*pair) for pair in ended)
        or after.unread > before.unread
        or stores >= 2 and after.stored >= 2 * after.stored_once
        or loads >= (MORE_LOADS if is_once else 2) and not has_new
    )


def _in_other_tiles(before: Effort, after: Effort) -> bool:
    """Whether a kernel has other compile-time constants and another grid, and all else as before: tiles of another
    size, where a right kernel is right in those that it had. A grid, or a constant, alone may have been the mistake."""
    names = lambda one: {name for name, _ in one.constants}
    for name in {one.kernel for one in before.launches}:
        was, now = ([one for one in each.launches if one.kernel == name] for each in (before, after))
        is_same = {one.given for one in was} == {one.given for one in now}
        pairs = [*itertools.product(was, now)]
        is_other = [a.constants != b.constants and a.grid != b.grid and names(a) == names(b) for a, b in pairs]
        if pairs and is_same and all(is_other):
            return True
    return False
