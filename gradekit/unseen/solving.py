"""Arguments for which a comparison of host code goes the way that it has not gone: by
trial over many sizes, then by a solver.

Solutions lie within the domain, and are small where that is possible. Everything is counted, so that the same
submission gets the same inputs on any machine.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gradekit.prove.assumptions import Symbol, one_of, term_of
from gradekit.prove.parts import atoms
from gradekit.prove.question import REFUTED
from gradekit.prove.solve import Solver
from gradekit.prove.symbolic_host import TERMS
from gradekit.prove.terms import negated, var
from gradekit.reuse import LruCache, SharedCache, shared
from gradekit.size_terms import Leaf, evaluated, holds
from gradekit.unseen.columns import INTERVALS, Bounds
from gradekit.unseen.host_branches import Path
from gradekit.unseen.scope import CallScope

STEPS = 2_000_000
"""The solver's own count of work for one comparison: about half a second."""

DENSE_ROOT = 20
"""The least root of a number that is looked at beside it: smaller sizes are anyway."""

MOST_TRIALS = 16
"""Paths whose trials are kept: at most 4 MB each."""

USUAL, LARGER, MOST_LARGER = 33, 4, 1 << 16
"""The largest call that is made has sizes of at most LARGER times those of the smallest, or LARGER * USUAL if that is
more, and no more elements than the smallest, or MOST_LARGER: for large ones, the reference takes longest."""

NEARLY = 1.25
"""Elements that are so many times the fewest are hardly more."""

PRIME = (1 << 31) - 1
"""Steps of a walk through combinations are counted modulo this one (a multiplicative generator's modulus)."""


@dataclass(frozen=True)
class Closeness:
    """How closely sizes are looked through: all up to `dense` for each dimension where there are two, fewer where there
    are more, and so many combinations of telling ones `together`."""

    dense: int
    together: int

    def alone(self, dimensions: int) -> int:
        """Up to which size all are tried."""
        return min(self.dense, 2 * self.dense // max(dimensions, 1))


CLOSE, ROUGH = Closeness(4096, 30_000), Closeness(512, 6_000)
"""For host code, which may ask for anything; and for kernels, whose masks and loops small sizes and their constants
decide."""


@dataclass(frozen=True)
class OtherWay:
    """A step of a path that is to go the other way, all before it being as they were."""

    path: Path
    step: int


@dataclass(frozen=True)
class Solutions:
    """Sizes and whole scalars, by name: the smallest that were found, and the largest of that order; for a limit, the
    smallest beyond it first. `beyond` is False where a limit was reached alone."""

    sizes: Sequence[dict[str, int]] = ()
    beyond: bool = True


# --- by trial --------------------------------------------------------------------------------------------------------


class PathTrials:
    """What the comparisons of paths give for the sizes that are tried, computed once for all comparisons of a path."""

    def __init__(self) -> None:
        self._known: LruCache[tuple[Hashable, CallScope], tuple[PathTrial | None]] = LruCache(MOST_TRIALS)

    def solutions(self, wanted: OtherWay, scope: CallScope, same_path: bool = False) -> Solutions:
        """Sizes and whole scalars for which the comparison goes the other way. Where no sizes take the same path up to
        there, others are tried too, unless it has to be the `same_path`."""
        key = wanted.path.decisions, scope
        known = self._known.get(key)
        if known is None:
            known = (_trial(wanted.path, scope),)
            self._known.put(key, known)
        (trial,) = known
        if trial is None:
            return Solutions()
        found = trial.solutions(wanted.step, same_path=True)
        return found if found.sizes or same_path else trial.solutions(wanted.step, same_path=False)


@dataclass(frozen=True)
class PathTrial:
    """The sizes that are tried on a path, a column for each name; which of them are `allowed`, and how many elements
    their largest tensor has; what each comparison of the path gives, None where that is not known, and where it is
    at its limit (`Path.levels`)."""

    names: Mapping[str, Tensor]
    allowed: Tensor
    elements: Tensor
    holds: Sequence[Any]
    levels: Sequence[Any]

    def solutions(self, wanted: int, same_path: bool) -> Solutions:
        """Those for which the comparison `wanted` goes the other way: where that is not the `same_path`, as many before
        it as can be go as they did, the nearest first, behind which it is likelier to stand."""
        if self.holds[wanted] is None:
            return Solutions()
        fits = self.allowed & ~torch.as_tensor(self.holds[wanted])
        for went in reversed(self.holds[:wanted]):
            held = fits & torch.as_tensor(went) if went is not None else fits
            fits = held if same_path or held.any() else fits
        places = fits.nonzero().view(-1)
        if not places.numel():
            return Solutions()
        smallest = self._smallest(places)
        level = self.levels[wanted]
        beyond = places[~torch.as_tensor(level).expand(fits.shape)[places]] if level is not None else places
        first = self._smallest(beyond) if beyond.numel() else smallest
        places = places[self.elements[places] <= max(float(self.elements[first]), MOST_LARGER)]
        for column in self.names.values():
            places = places[column[places] <= LARGER * max(int(column[first]), USUAL)]
        largest = int(places[self.elements[places].argmax()])
        chosen = dict.fromkeys([first, smallest, largest])
        sizes = [{name: int(column[place]) for name, column in self.names.items()} for place in chosen]
        return Solutions(sizes, bool(beyond.numel()))

    def _smallest(self, places: Tensor) -> int:
        """That with the fewest elements; of those that have hardly more, that with the least to compute, whose sizes
        are most alike: what is short in one dimension leaves much of each tile empty."""
        few = self.elements[places]
        places = places[few <= NEARLY * few.min()]
        sizes = torch.stack([column[places].double().clamp(min=1) for column in self.names.values()])
        return int(places[(sizes.prod(dim=0) * sizes.amax(dim=0)).argmin()])


def _trial(path: Path, scope: CallScope) -> PathTrial | None:
    terms = path.origins.terms
    compared = [terms[n] for condition, _ in path.steps for n in (condition.left, condition.right)]
    names = tried(scope, constants([*compared, *terms]), scope.sizes_of(path.form))
    if not names:
        return None
    leaves = scope.leaves(names) | scope.strides(names)
    return PathTrial(names, scope.allows(names), scope.elements(names), *path.holds_and_levels(leaves))


def tried(
    scope: CallScope, special: Sequence[int], own: Mapping[str, int] | None = None, close: Closeness = CLOSE
) -> dict[str, Tensor]:
    """Sizes to try, one column for each name: each dimension alone over all that is small and special, the others at
    their simplest, or as a call has them that is taken for its `own`; then combinations of those that are telling. Of
    a size that the check lists, what it lists."""
    telling = {name: scope.listed(name) or _telling(special, *scope.range(name)) for name in scope.names}
    columns: dict[str, list[Tensor]] = {name: [] for name in scope.names}
    for name in scope.names:
        alone = torch.tensor(sorted({*telling[name], *_first(scope, name, close.alone(len(scope.names)))}))
        for base in (*(dict.fromkeys(scope.names, n) for n in (1, 2, 33)), *([own] if own else ())):
            for other in scope.names:
                size = _nearest(scope, other, base.get(other, 1))
                columns[other].append(alone if other == name else torch.full_like(alone, size))
    if len(scope.names) > 1:
        together = _spread([telling[name] for name in scope.names], close.together)
        for name, column in zip(scope.names, together, strict=True):
            columns[name].append(column)
    return {name: torch.cat(parts) for name, parts in columns.items()}


def _first(scope: CallScope, name: str, dense: int) -> range:
    least, most = scope.range(name)
    return range(0) if scope.listed(name) else range(least, min(most, least + dense) + 1)


def _nearest(scope: CallScope, name: str, size: int) -> int:
    least, most = scope.range(name)
    return min(scope.listed(name) or (min(max(size, least), most),), key=lambda one: abs(one - size))


_possible: SharedCache[tuple[CallScope, tuple[int, ...], Closeness], dict[str, Tensor]] = shared(MOST_TRIALS)


def possible_sizes(scope: CallScope, special: Sequence[int], close: Closeness = CLOSE) -> dict[str, Tensor]:
    """Those of the sizes to try (`tried`) that are calls which the check may make; not to be written to."""
    key = scope, tuple(special), close
    found = _possible.get(key)
    if found is None:
        columns = tried(scope, special, close=close)
        allowed = scope.allows(columns) if columns else None
        found = {name: column[allowed] for name, column in columns.items()}
        _possible.put(key, found)
    return found


def _spread(options: Sequence[Sequence[int]], most: int) -> list[Tensor]:
    """Combinations of the options, a column for each: all where they are no more than `most`, else all of the first few
    of each, then a walk through the rest."""
    if math.prod(map(len, options)) <= most:
        return [*torch.cartesian_prod(*map(torch.tensor, options)).T]
    few = int(most ** (1 / len(options)))
    first = torch.cartesian_prod(*(torch.tensor(one[:few]) for one in options)).T
    turns = torch.arange(most - first.shape[1])
    walks = [turns * (48271 ** (place + 2) % PRIME) % PRIME % len(one) for place, one in enumerate(options)]
    columns = zip(options, first, walks, strict=True)
    return [torch.cat([begun, torch.tensor(one)[walk]]) for one, begun, walk in columns]


def _telling(special: Sequence[int], least: int, most: int) -> list[int]:
    near = [one for n in special for one in _near(n)]
    multiples = [n * k + d for n in special[:12] if n > 0 for k in (2, 3, 4, 8, 16, 64, 128) for d in (0, 1)]
    own = [n for n in special[:12] if 1 < n < 1 << 20]
    multiples += [a * b + d for a in own for b in own for d in (0, 1)]
    powers = [(1 << k) + d for k in range(2, 22) for d in (0, 1, -1)]
    small = list(range(1, 20))
    first = [n for pair in itertools.zip_longest(small, near) for n in pair if n is not None]
    found = [n for n in dict.fromkeys([*first, *powers, *multiples, least, 0]) if least <= n <= most]
    return found or [least]


def _near(n: int) -> tuple[int, ...]:
    root = math.isqrt(max(n, 0))
    return (n, n + 1, n - 1, *((root, root + 1) if root >= DENSE_ROOT else ()))


def constants(terms: Sequence[Leaf]) -> list[int]:
    """The numbers among the terms, in order, each once."""
    return list(dict.fromkeys(int(t[1]) for t in terms if t[0] == "number" and 1 < abs(int(t[1])) < 1 << 40))


# --- by a solver -----------------------------------------------------------------------------------------------------


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
