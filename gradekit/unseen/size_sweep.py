"""Sizes for which a kernel goes a way that no run has gone: by trial, over many sizes at once."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from gradekit.inputs.draws import Draws
from gradekit.reuse import LruCache
from gradekit.size_terms import evaluated
from gradekit.unseen.columns import COLUMNS
from gradekit.unseen.further import rank_of
from gradekit.unseen.host_branches import Path
from gradekit.unseen.kernel_branches import KernelText
from gradekit.unseen.kernel_values import Corner, corners, goes
from gradekit.unseen.missing_ways import Missing
from gradekit.unseen.scope import FAR, CallScope, sizes_alone
from gradekit.unseen.solving import ROUGH, constants, possible_sizes

MANY, AROUND, MOST_AROUND = 1 << 10, 8, 1 << 15
"""Elements of the largest tensor from which on larger sizes are tried, too: up to twice as large, or twice AROUND, with
so many elements at most."""

MOST_KEPT = 8
"""Sweeps that are kept: of some MB each."""


class SizeSweeps:
    """Those of one submission: the checks that may have the same sizes share them."""

    def __init__(self) -> None:
        self._known: LruCache[Hashable, tuple[SizeSweep | None]] = LruCache(MOST_KEPT)

    def of(self, draws: Draws, path: Path, special: tuple[int, ...], far: bool) -> SizeSweep | None:
        """None where none of the sizes takes the path. With `far`, they may be all that the entry promises, and make
        large tensors."""
        scope = CallScope(sizes_alone(draws), rank_of(draws, path.form), far, FAR if far else 1)
        key = path.decisions, path.launches, scope, special
        known = self._known.get(key)
        if known is None:
            known = (SizeSweep.of(scope, path, special),)
            self._known.put(key, known)
        return known[0]


@dataclass(frozen=True)
class SizeSweep:
    """Many sizes for a path through host code, `columns` by name; `launches` are the kernels' names with the grid and
    the whole numbers that they get."""

    columns: Mapping[str, torch.Tensor]
    weights: torch.Tensor
    launches: Sequence[tuple[str, tuple[Any, ...], Mapping[str, Any]]]
    _corners: dict[tuple[KernelText, int], list[Corner]] = field(default_factory=dict)

    @staticmethod
    def of(scope: CallScope, path: Path, special: Sequence[int]) -> SizeSweep | None:
        """Of the calls of `scope` that take the path."""
        columns = possible_sizes(scope, (*special, *constants(path.origins.terms)), ROUGH)
        if not columns:
            return None
        taking = torch.ones(len(next(iter(columns.values()))), dtype=torch.bool)
        for went in path.holds(scope.leaves(columns)):
            taking &= torch.as_tensor(True if went is None else went)
        if not bool(taking.any()):
            return None
        columns = {name: column[taking] for name, column in columns.items()}
        terms = evaluated(path.origins.terms, scope.leaves(columns), COLUMNS)

        def at(number: int) -> Any:
            return terms[number] if 0 <= number < len(terms) else None

        launches = [
            (launch.kernel, tuple(map(at, launch.grid)), {name: at(number) for name, number in launch.names})
            for launch in path.explored.launches
        ]
        return SizeSweep(columns, scope.elements(columns), launches)

    def solved(self, one: Missing) -> list[dict[str, int]]:
        """The smallest sizes for which the branch goes that way; empty where it does not follow from sizes. Where that
        takes many elements, the last of which may be right by chance, somewhat larger sizes, too."""
        fits = self._fits(one, everywhere=False)
        places = fits.nonzero().view(-1)
        if not places.numel():
            return []
        smallest = int(places[self.weights[places].argmin()])
        many = float(self.weights[smallest]) > MANY
        places = places[self.weights[places] <= (MOST_AROUND if many else 0)]
        for column in self.columns.values():
            places = places[column[places] <= 2 * max(int(column[smallest]), AROUND)]
        chosen = dict.fromkeys([smallest, *([int(places[self.weights[places].argmax()])] if places.numel() else [])])
        return [{name: int(column[place]) for name, column in self.columns.items()} for place in chosen]

    def solved_everywhere(self, one: Missing) -> dict[str, int] | None:
        """The smallest sizes for which the branch goes that way in every program, lane and turn, with two of each size
        where that is possible; None where it does not follow from them."""
        fits = self._fits(one, everywhere=True)
        several = fits & torch.stack([column > 1 for column in self.columns.values()]).all(dim=0)
        places = (several if bool(several.any()) else fits).nonzero().view(-1)
        if not places.numel():
            return None
        place = int(places[self.weights[places].argmin()])
        return {name: int(column[place]) for name, column in self.columns.items()}

    def _fits(self, one: Missing, everywhere: bool) -> torch.Tensor:
        found = torch.zeros(len(self.weights), dtype=torch.bool)
        for place, (kernel, _, _) in enumerate(self.launches):
            if kernel != one.branch.kernel:
                continue
            ways = [goes(one.text, one.number, one.branch, corner) for corner in self._at(one.text, place)]
            each = [torch.as_tensor(way) for way in ways if way is not None]
            if each and (len(each) == len(ways) or not everywhere):
                together = torch.logical_and if everywhere else torch.logical_or
                found |= functools.reduce(together, each)
        return found

    def _at(self, text: KernelText, place: int) -> list[Corner]:
        """The corners of a launch, with the values that are known of the kernel there."""
        if (text, place) not in self._corners:
            _, grid, names = self.launches[place]
            self._corners[text, place] = corners(grid, names)
        return self._corners[text, place]
