"""Whether every element of a tensor is written by somebody, over all launches that store to it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

import torch

from gradekit.prove import Limit
from gradekit.prove.claims import PROGRAM, LaunchClaims, NoWitness, Simpler, Tiles, Touch, witness
from gradekit.prove.setting import below, product
from gradekit.prove.solve import Answer, Solver
from gradekit.prove.symbolic_host import StorageRegion
from gradekit.prove.symbolic_values import lanes
from gradekit.prove.terms import TRUE, Atom, Substitution, Term, Truth, atoms, both, equal, var
from gradekit.prove.value_of import Evaluation, Undefined, value_of


class Coverage:
    """Of one `region`, by the stores of `launches`; `elements` are the coordinates of the one that is asked about."""

    def __init__(self, region: StorageRegion, launches: Sequence[LaunchClaims], path: Truth, solver: Solver) -> None:
        self.region, self.path, self.solver = region, path, solver
        self.elements = [var(f"element {axis}", 0) for axis in range(len(region.sizes))]
        self.flat = var("element", 0)
        self.stores = [(launched, touch) for launched in launches for touch in _stores(launched, region)]

    def decide(self) -> Answer:
        """Whether each element is written; "open" where no program can be named that would."""
        by_axis = self._claim(flat=False)
        if self._follows(by_axis) or any(self._as_many_as_tiles(launched, touch) for launched, touch in self.stores):
            return Answer("proved")
        is_flat = not all(launched.by_axis(touch) for launched, touch in self.stores)
        if is_flat and self._follows(self._claim(flat=True)):
            return Answer("proved")
        values = left_out(self.stores, self.path)
        if values is not None:
            return Answer("refuted", values)
        answer = self._ask(by_axis)
        if answer.verdict != "proved":
            flat = self._ask(self._claim(flat=True))
            answer = flat if flat.verdict == "proved" or answer.verdict == "open" else answer
        return answer

    def _as_many_as_tiles(self, launched: LaunchClaims, touch: Touch) -> bool:
        """Whether each program writes a tile of its own, and there are as many as tiles: then all are written."""
        access, along = touch.access, touch.tiles(by_axis=True)
        if along is None or access.turns or not launched.by_axis(touch):
            return False
        hypotheses = [*launched.hypotheses, *launched.always(access)]
        is_positive = lambda by: self.solver.follows(hypotheses, by >= 1)
        there = [(one.tile >= 0) & below(one.tile, one.count, is_positive) for one in along]
        inside = [place < size for place, size in zip(touch.coordinates or (), self.region.sizes, strict=True)]
        count = equal(product([one.count for one in along]), product(launched.started.grid))
        return (
            self.solver.follows([self.path], count)
            and all(self.solver.follows(hypotheses, one) for one in there)
            and self.solver.follows([*hypotheses, *inside], access.active)
            and launched.apart(touch, touch, True) == Answer("proved")
        )

    def _claim(self, flat: bool) -> tuple[list[Truth], Truth] | None:
        """Hypotheses, and that one of the stores writes the element; None where nobody can be named who would."""
        written = [self._written(launched, touch, flat) for launched, touch in self.stores]
        found = [one for one in written if one is not None]
        return ([self.path, *self._bounds(flat)], ~both(*(~one for one in found))) if found else None

    def _follows(self, claim: tuple[list[Truth], Truth] | None) -> bool:
        return claim is not None and self.solver.follows(*claim)

    def _ask(self, claim: tuple[list[Truth], Truth] | None) -> Answer:
        return self.solver.ask(*claim) if claim is not None else Answer("open")

    def _written(self, launched: LaunchClaims, touch: Touch, flat: bool) -> Truth | None:
        """That a store writes the element: the condition under which the program and lanes that were guessed do."""
        counters, elements = touch.access.counters(PROGRAM), [self.flat] if flat else self.elements
        places = (touch.place,) if flat else touch.coordinates
        if places is None:
            return None
        equations = [*zip(places, elements, strict=True)]
        try:
            found = witness(equations, counters)
        except NoWitness:
            return None
        simple, put = Simpler(self.solver, [self.path, *self._bounds(flat)]), Substitution(found.get)
        ranges = [_in_range(found[counter.key], counter) for counter in counters]
        limits = [found[p.atom or ""] < g for p, g in zip(PROGRAM, launched.started.grid, strict=True)]
        same = [equal(simple.term(put.term(address)), element) for address, element in equations]
        return both(*map(simple.truth, (*ranges, *limits)), *same, simple.truth(put.truth(touch.access.active)))

    def _bounds(self, flat: bool) -> list[Truth]:
        if flat:
            return [self.flat < self.region.count]
        return [e < size for e, size in zip(self.elements, self.region.sizes, strict=True)]


def _in_range(value: Term, counter: Atom) -> Truth:
    low, high = counter.range
    return both(value >= (low or 0), value <= high if high is not None else TRUE)


def _stores(launched: LaunchClaims, region: StorageRegion) -> list[Touch]:
    return [one for one in launched.touched if one.access.kind == "store" and one.region.storage == region.storage]


# --- tiles that no program writes, found by enumerating all programs at many sizes ------------------------------------
#
# Formulas as columns, and no memory. What is found is a counterexample, which the engine has to confirm. Sizes are
# those with so many tiles along each axis as the launch's own numbers make special: a group of 8, 24 programs, a
# limit of 64 rows.


def left_out(stores: Sequence[tuple[LaunchClaims, Touch]], path: Truth) -> dict[str, int] | None:
    """Values for which a tile of the region is written by no program; None where none are found."""
    by_axis = all(launched.by_axis(touch) for launched, touch in stores)
    tiles = [touch.tiles(by_axis) or [] for _, touch in stores]
    lengths = [[one.length.number or 1 for one in along] for along in tiles]
    if not stores or not lengths[0] or any(each != lengths[0] for each in lengths):
        return None
    setting = stores[0][0].host.setting
    sizes = [size.atom for size in stores[0][1].region.sizes]
    plain = {size.atom for size in setting.sizes.values()}
    if None in sizes or not plain >= setting.values.keys():
        return None
    steps = lengths[0] if by_axis else [max(round(lengths[0][0] ** (1 / len(sizes))), 1)] * len(sizes)
    try:
        calls = [*_calls(stores, tiles, {one or "": n for one, n in zip(sizes, steps, strict=True)}, path)]
        return _left_out(stores, tiles, calls) if calls else None
    except Undefined:
        return None


def _calls(
    stores: Sequence[tuple[LaunchClaims, Touch]],
    tiles: Sequence[Sequence[Tiles]],
    steps: Mapping[str, int],
    path: Truth,
) -> Iterator[dict[str, int]]:
    """Sizes of so many `steps` each, the smallest first, which take the path."""
    formulas: list[Term | Truth] = [part for _, touch in stores for part in (touch.place, touch.access.active)]
    formulas += [size for launched, _ in stores for size in launched.started.grid]
    near = {n + more for n in _numbers(formulas) for more in (0, 1, -1)}
    counts = sorted(n for n in {*Limit.FEW_TILES, *near} if n > 0)
    usual, rows = stores[0][0].host.setting.values, 0
    for chosen in sorted(itertools.product(counts, repeat=len(steps)), key=math.prod):
        own = {name: (n - 1) * step + 1 for n, (name, step) in zip(chosen, steps.items(), strict=True)}
        few = {**dict.fromkeys(usual, 2), **own}
        rows += sum(_rows(one, touch, along, few) for (one, touch), along in zip(stores, tiles, strict=True))
        if rows > Limit.ROWS:
            return
        yield from [values for values in (few, {**usual, **own}) if Evaluation(values, unknown=False).truth(path)][:1]


def _numbers(formulas: Sequence[Term | Truth]) -> set[int]:
    terms = [part for atom in atoms(*formulas).values() for part in atom.args if isinstance(part, Term)]
    conditions = [part for atom in atoms(*formulas).values() for part in atom.args if isinstance(part, Truth)]
    terms += [part.args[0] for part in (*formulas, *conditions) if isinstance(part, Truth) and part.op in ("le", "eq")]
    terms += [part for part in formulas if isinstance(part, Term)]
    return {abs(factor) for one in terms for factor in one.parts.values() if 1 < abs(factor) <= Limit.SPECIAL}


def _rows(launched: LaunchClaims, touch: Touch, tiles: Sequence[Tiles], values: Mapping[str, int]) -> int:
    """Turns of programs: where there is a loop, as many as all tiles take, and one more."""
    programs = math.prod(value_of(size, values) for size in launched.started.grid)
    count = math.prod(value_of(one.count, values) for one in tiles)
    return programs * (-(-count // max(programs, 1)) + 1 if touch.access.turns else 1)


def _left_out(
    stores: Sequence[tuple[LaunchClaims, Touch]], tiles: Sequence[Sequence[Tiles]], calls: Sequence[Mapping[str, int]]
) -> dict[str, int] | None:
    counts = [[value_of(one.count, values) for one in tiles[0]] for values in calls]
    first = [0, *itertools.accumulate(map(math.prod, counts))]
    written = torch.zeros(first[-1], dtype=torch.bool)
    for (launched, touch), along in zip(stores, tiles, strict=True):
        columns = _columns(launched, touch, along, calls)
        worked = Evaluation(columns)
        found, there = columns["call"] * 0, torch.as_tensor(worked.truth(touch.access.active))
        for axis, one in enumerate(along):
            count = torch.tensor([each[axis] for each in counts])[columns["call"]]
            tile = torch.as_tensor(worked.term(one.tile))
            found, there = found * count + tile, there & (tile >= 0) & (tile < count)
        written[(torch.tensor(first)[columns["call"]] + found)[there.expand(found.shape)]] = True
    missed = [number for number, (low, high) in enumerate(itertools.pairwise(first)) if not written[low:high].all()]
    return dict(calls[missed[0]]) if missed else None


def _columns(
    launched: LaunchClaims, touch: Touch, tiles: Sequence[Tiles], calls: Sequence[Mapping[str, int]]
) -> dict[str, torch.Tensor]:
    """One row for each turn of each program in each call: the number of the `call`, and the atoms' values."""
    rows = [_rows(launched, touch, tiles, values) for values in calls]
    call = torch.repeat_interleave(torch.arange(len(calls)), torch.tensor(rows))
    found = {key: torch.tensor([values[key] for values in calls])[call] for key in calls[0]} | {"call": call}
    grid = [torch.tensor([value_of(size, values) for values in calls])[call] for size in launched.started.grid]
    left = torch.cat([torch.arange(count) for count in rows])
    for one, size in zip(PROGRAM, grid, strict=True):
        found[one.atom or ""], left = left % size, left // size
    zero = torch.zeros_like(call)
    found |= {one.atom: zero for one in lanes(touch.access.shape) if one.atom}
    return found | {turn.atom: left for turn in touch.access.turns if turn.atom}
