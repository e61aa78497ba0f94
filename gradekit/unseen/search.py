"""One search for sizes: among many candidates for a path through host code, those that meet a want.

A want says what must be seen: a comparison of host code that goes the other way, a branch, mask or loop of a kernel
that goes a way that none has gone. The smallest call that shows it is made, and a larger one of that order.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import torch
from torch import Tensor

from gradekit.prove.assumptions import Symbol, one_of, term_of
from gradekit.prove.parts import atoms
from gradekit.prove.question import REFUTED
from gradekit.prove.solve import Solver
from gradekit.prove.symbolic_host import TERMS
from gradekit.prove.terms import negated, var
from gradekit.reuse import LruCache
from gradekit.size_terms import behind, evaluated, holds, leaves_in
from gradekit.unseen.candidates import CLOSE, Closeness, constants, possible_sizes
from gradekit.unseen.columns import COLUMNS, INTERVALS, Bounds
from gradekit.unseen.host_branches import Path
from gradekit.unseen.kernel_branches import KernelText
from gradekit.unseen.kernel_values import Corner, corners, goes
from gradekit.unseen.missing_ways import Missing
from gradekit.unseen.scope import FAR, CallScope

STEPS = 2_000_000
"""The solver's own count of work for one comparison: about half a second."""

MOST_SEARCHED = 16
"""Paths whose candidates are kept: of some MB each."""

USUAL, LARGER, MOST_LARGER = 33, 4, 1 << 16
"""The largest call that is made has sizes of at most LARGER times those of the smallest, or LARGER * USUAL if that is
more, and no more elements than the smallest, or MOST_LARGER: for large ones, the reference takes longest."""

MANY = 1 << 12
"""Elements of a large call."""

NEARLY = 1.25
"""Elements that are so many times the fewest are hardly more."""


@dataclass(frozen=True)
class Solutions:
    """Sizes and whole scalars, by name: the smallest that were found, and the largest of that order; for a limit, the
    smallest beyond it first. `beyond` is False where a limit was reached alone."""

    sizes: Sequence[dict[str, int]] = ()
    beyond: bool = True


class Want(Protocol):
    """What must be seen."""

    def met(self, among: Candidates) -> Tensor | None:
        """By which of the candidates; None where that does not follow from sizes."""

    def level(self, among: Candidates) -> Tensor | None:
        """Where a limit is reached, and not gone beyond; None where there is none."""


@dataclass(frozen=True)
class OtherWay:
    """A step of a path that is to go the other way, all before it being as they were, or where it need not be the
    `same_path` as many of them as can be."""

    path: Path
    step: int
    same_path: bool = True

    def met(self, among: Candidates) -> Tensor | None:
        """See `Want`: of steps before it, the nearest first, behind which it is likelier to stand."""
        if among.held[self.step] is None:
            return None
        fits = ~torch.as_tensor(among.held[self.step]).expand_as(among.elements)
        for went in reversed(among.held[: self.step]):
            kept = fits & torch.as_tensor(went) if went is not None else fits
            fits = kept if self.same_path or kept.any() else fits
        return fits

    def level(self, among: Candidates) -> Tensor | None:
        """See `Want`."""
        level = among.levels[self.step]
        return None if level is None else torch.as_tensor(level).expand_as(among.elements)


@dataclass(frozen=True)
class KernelWay:
    """A way of a kernel that is to be gone by some program, lane and turn; or `everywhere`, with two of each size where
    that is possible."""

    missing: Missing
    everywhere: bool = False

    def met(self, among: Candidates) -> Tensor | None:
        """See `Want`."""
        one, found = self.missing, torch.zeros_like(among.elements, dtype=torch.bool)
        for place, (kernel, _, _) in enumerate(among.launches):
            if kernel != one.branch.kernel:
                continue
            ways = [goes(one.text, one.number, one.branch, corner) for corner in among.corners(one.text, place)]
            each = [torch.as_tensor(way) for way in ways if way is not None]
            if each and (len(each) == len(ways) or not self.everywhere):
                found |= functools.reduce(torch.logical_and if self.everywhere else torch.logical_or, each)
        found &= among.taking
        several = found & torch.stack([column > 1 for column in among.columns.values()]).all(dim=0)
        return several if self.everywhere and bool(several.any()) else found

    def level(self, among: Candidates) -> None:
        """See `Want`."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """Sizes that a check may have, `columns` by name, beside a path: with how many `elements` of the largest tensor."""

    path: Path
    scope: CallScope
    columns: Mapping[str, Tensor]
    _corners: dict[tuple[KernelText, int], list[Corner]] = field(default_factory=dict)

    @functools.cached_property
    def elements(self) -> Tensor:
        """Of the largest tensor."""
        return self.scope.elements(self.columns)

    @functools.cached_property
    def _values(self) -> Sequence[Any]:
        leaves = self.scope.leaves(self.columns) | self.scope.strides(self.columns)
        return evaluated(self.path.origins.terms, leaves, COLUMNS)

    @functools.cached_property
    def held(self) -> Sequence[Any]:
        """For each comparison of the path where it goes as it did; None where that is not known."""
        return self.path.held(self._values)

    @functools.cached_property
    def levels(self) -> Sequence[Any]:
        """For each comparison where it is at its limit (see `Path.levels`)."""
        return self.path.at_limits(self._values)

    @functools.cached_property
    def taking(self) -> Tensor:
        """Where all comparisons go as they did."""
        known = [torch.as_tensor(went).expand_as(self.elements) for went in self.held if went is not None]
        return torch.stack(known).all(dim=0) if known else torch.ones_like(self.elements, dtype=torch.bool)

    @functools.cached_property
    def launches(self) -> Sequence[tuple[str, tuple[Any, ...], Mapping[str, Any]]]:
        """The kernels' names with the grid and the whole numbers that they get."""

        def at(number: int) -> Any:
            return self._values[number] if 0 <= number < len(self._values) else None

        return [
            (launch.kernel, tuple(map(at, launch.grid)), {name: at(number) for name, number in launch.names})
            for launch in self.path.explored.launches
        ]

    @functools.cached_property
    def _tiles(self) -> Mapping[str, int]:
        """The sizes that a grid is made of, and by what they are divided."""
        tiles: dict[str, int] = {}
        terms, named = self.path.origins.terms, self.scope.named
        for number in behind(terms, [n for launch in self.path.explored.launches for n in launch.grid]):
            match terms[number]:
                case ("//", int(a), int(b)) if terms[b][0] == "number" and int(terms[b][1]) > 1:
                    for name in {named[leaf] for leaf in leaves_in(terms, a) if leaf in named}:
                        tiles[name] = max(tiles.get(name, 1), int(terms[b][1]))
        return tiles

    def _in_several_tiles(self, sizes: Mapping[str, int], want: Want) -> list[dict[str, int]]:
        """These sizes, where a grid is made of several of them each of two tiles and a part of one at least: what a
        program makes of its number shows there alone. None where the want is not met there."""
        ragged = {name: size if size > 2 * tile and size % tile else max(size // tile, 2) * tile + 1
                  for name, tile in self._tiles.items() for size in [sizes[name]]}  # fmt: skip
        found = {**sizes, **ragged}
        columns = {name: torch.tensor([size]) for name, size in found.items()}
        if len(ragged) < 2 or not bool(replace(self.scope, beyond=FAR).allows(columns)):
            return []
        met = want.met(Candidates(self.path, self.scope, columns))
        return [found] if met is not None and bool(met) else []

    def corners(self, text: KernelText, place: int) -> list[Corner]:
        """The corners of a launch, with the values that are known of the kernel there."""
        if (text, place) not in self._corners:
            _, grid, names = self.launches[place]
            self._corners[text, place] = corners(grid, names)
        return self._corners[text, place]

    def solutions(self, want: Want) -> Solutions:
        """The smallest sizes that meet a want, and the largest of that order."""
        fits = want.met(self)
        if fits is None or not bool(fits.any()):
            return Solutions()
        places = fits.nonzero().view(-1)
        smallest, level = self._smallest(places), want.level(self)
        beyond = places[~level[places]] if level is not None else places
        first = self._smallest(beyond) if beyond.numel() else smallest
        places = places[self.elements[places] <= max(float(self.elements[first]), MOST_LARGER)]
        for column in self.columns.values():
            places = places[column[places] <= LARGER * max(int(column[first]), USUAL)]
        chosen = dict.fromkeys([first, smallest, int(places[self.elements[places].argmax()])])
        sizes = [{name: int(column[place]) for name, column in self.columns.items()} for place in chosen]
        place = int(self.scope.count(sizes[0]) < MANY)  # of large calls, often only the first is afforded
        sizes[place:place] = [one for one in self._in_several_tiles(sizes[0], want) if one not in sizes]
        return Solutions(sizes, bool(beyond.numel()))

    def _smallest(self, places: Tensor) -> int:
        """That with the fewest elements; of those that have hardly more, that with the least to compute, whose sizes
        are most alike: what is short in one dimension leaves much of each tile empty."""
        few = self.elements[places]
        places = places[few <= NEARLY * few.min()]
        sizes = torch.stack([column[places].double().clamp(min=1) for column in self.columns.values()])
        return int(places[(sizes.prod(dim=0) * sizes.amax(dim=0)).argmin()])


class Search:
    """The candidates of paths, worked out once for all wants."""

    def __init__(self) -> None:
        self._known: LruCache[Hashable, tuple[Candidates | None]] = LruCache(MOST_SEARCHED)

    def among(
        self, path: Path, scope: CallScope, special: tuple[int, ...] = (), close: Closeness = CLOSE
    ) -> Candidates | None:
        """The calls of `scope`, looked for near the numbers that are `special` and those of the path; None where there
        are none."""
        key = path.decisions, path.launches, scope, special, close
        if self._known.get(key) is None:
            terms = path.origins.terms
            compared = [terms[n] for condition, _ in path.steps for n in (condition.left, condition.right)]
            numbers = (*special, *constants([*compared, *terms]))
            columns = possible_sizes(scope, numbers, scope.sizes_of(path.form), close)
            some = any(column.numel() for column in columns.values())
            self._known.put(key, (Candidates(path, scope, columns) if some else None,))
        return (self._known.get(key) or (None,))[0]

    def other_way(self, wanted: OtherWay, scope: CallScope) -> Solutions:
        """Sizes and whole scalars for which a comparison of host code goes the other way."""
        among = self.among(wanted.path, scope)
        return among.solutions(wanted) if among is not None else Solutions()


def possible(wanted: OtherWay, scope: CallScope) -> bool:
    """Whether the ranges of sizes leave open that the comparison goes the other way."""
    condition, _ = wanted.path.steps[wanted.step]
    try:
        leaves = scope.leaves({name: Bounds(*scope.range(name)) for name in scope.names})
    except ValueError:  # a shape has more than sums and products
        return True
    ways = holds(condition, evaluated(wanted.path.origins.terms, leaves, INTERVALS), INTERVALS)
    return ways is None or (not condition.held) in ways


def solved(wanted: OtherWay, scope: CallScope) -> list[dict[str, int]]:
    """The sizes that the solver finds, if it does."""
    names = {name: Symbol(var(name, *scope.range(name))) for name in scope.names}
    terms = {leaf: term_of(value) for leaf, value in scope.leaves(names).items()}
    values = evaluated(wanted.path.origins.terms, terms, TERMS)
    held = [(holds(condition, values, TERMS), condition.held) for condition, _ in wanted.path.steps[: wanted.step + 1]]
    if held[-1][0] is None:
        return []
    conditions = [one if way == (step < wanted.step) else negated(one)
                  for step, (one, way) in enumerate(held) if one is not None]  # fmt: skip
    listed = ((names[name].term, scope.listed(name)) for name in scope.names)
    conditions += [one_of(size, only) for size, only in listed if only is not None]
    answer = Solver(STEPS).example(*scope.formulas(names), *conditions)
    if answer.verdict != REFUTED:
        return []
    return [{name: answer.values.get(atom.key, scope.range(name)[0])
             for name, size in names.items() for atom in atoms(size.term).values()}]  # fmt: skip
