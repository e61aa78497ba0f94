"""One search for sizes: among many candidates for a path through host code, those that meet a want.

A want says what must be seen (`gradekit.unseen.wants`). The smallest call that shows it is made, and a larger one of
that order.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import torch
from torch import Tensor

from gradekit.prove.columns import COLUMNS
from gradekit.reuse import LruCache
from gradekit.size_terms import Leaf, behind, evaluated, leaves_in
from gradekit.unseen.candidates import CLOSE, MOST_KEPT, Closeness, constants, possible_sizes
from gradekit.unseen.host_branches import Path, TracedForm
from gradekit.unseen.kernel_branches import KernelText
from gradekit.unseen.kernel_values import Place, corners
from gradekit.unseen.scope import FAR, CallScope

USUAL, LARGER, MOST_LARGER = 33, 4, 1 << 16
"""The largest call that is made has sizes of at most LARGER times those of the smallest, or LARGER * USUAL if that is
more, and no more elements than the smallest, or MOST_LARGER: for large ones, the reference takes longest."""

MANY = 1 << 12
"""Elements of a large call, beside which a larger one is made as well: the last of many may be right by chance."""

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

    def met(self, among: Calls) -> Tensor | None:
        """By which of the calls; None where that does not follow from sizes."""

    def level(self, among: Calls) -> Tensor | None:
        """Where a limit is reached, and not gone beyond; None where there is none."""


@dataclass(frozen=True, eq=False)
class Calls:
    """So many calls beside a path: the numbers that host code is given in them, as columns."""

    path: Path
    leaves: Mapping[Leaf, Any]
    count: int
    most_held: Any = None  # by any tensor whose numbers are promised to lie in a range, such as indices
    _corners: dict[tuple[KernelText, int], list[Place]] = field(default_factory=dict)

    @staticmethod
    def of(path: Path, forms: Sequence[TracedForm], scope: CallScope) -> Calls:
        """Those that have been made, and took the path."""
        mine = [form for form in forms if form.kind == path.form.kind and path.taken_by(form)]
        leaves = {leaf: torch.tensor([one.leaves[leaf] for one in mine]) for leaf in (mine[0].leaves if mine else ())}
        sizes = [scope.sizes_of(form) for form in mine]
        columns = {name: torch.tensor([one.get(name, 0) for one in sizes]) for name in scope.names}
        return Calls(path, leaves, len(mine), scope.most_held(columns) if mine else None)

    def each(self, value: Any) -> Tensor:
        """A value for each of the calls."""
        return torch.as_tensor(value).expand(self.count)

    @functools.cached_property
    def _values(self) -> Sequence[Any]:
        return evaluated(self.path.origins.terms, self.leaves, COLUMNS)

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
        known = [self.each(went) for went in self.held if went is not None]
        return torch.stack(known).all(dim=0) if known else self.each(True)

    @functools.cached_property
    def launches(self) -> Sequence[tuple[str, tuple[Any, ...], Mapping[str, Any]]]:
        """The kernels' names with the grid and the whole numbers that they get."""

        def at(number: int) -> Any:
            return self._values[number] if 0 <= number < len(self._values) else None

        return [
            (launch.kernel, tuple(map(at, launch.grid)), {name: at(number) for name, number in launch.names})
            for launch in self.path.explored.launches
        ]

    def corners(self, text: KernelText, place: int) -> list[Place]:
        """The corners of a launch, with the values that are known of the kernel there."""
        if (text, place) not in self._corners:
            _, grid, names = self.launches[place]
            self._corners[text, place] = corners(grid, names)
        return self._corners[text, place]


class Candidates(Calls):
    """Calls with sizes that a check may have, `columns` by name: with how many `elements` of the largest tensor."""

    def __init__(self, path: Path, scope: CallScope, columns: Mapping[str, Tensor]) -> None:
        leaves, count = scope.leaves(columns) | scope.strides(columns), len(next(iter(columns.values())))
        super().__init__(path, leaves, count, scope.most_held(columns))
        self.scope, self.columns = scope, columns

    @functools.cached_property
    def elements(self) -> Tensor:
        """Of the largest tensor."""
        return self.scope.elements(self.columns)

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
        self._known: LruCache[Hashable, tuple[Candidates | None]] = LruCache(MOST_KEPT)

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

    def solutions(
        self, want: Want, path: Path, scope: CallScope, special: tuple[int, ...] = (), close: Closeness = CLOSE
    ) -> Solutions:
        """Calls of `scope` that take a path and meet a want."""
        among = self.among(path, scope, special, close)
        return among.solutions(want) if among is not None else Solutions()
