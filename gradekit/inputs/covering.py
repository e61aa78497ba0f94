"""Covering designs: few rows in which every value of every factor meets every value of every other.

A factor is a name with its levels. A design of strength 2 has every pair of levels of two factors in at least one row,
of strength 3 every triple. `covertable` makes it, always the same for the same factors; this module says what may not
be combined, and counts what was covered.
"""

import functools
import itertools
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from covertable import make

Row = Mapping[str, Hashable]  # a level for each factor


@dataclass(frozen=True)
class Rule:
    """What may be combined: `holds` is asked about rows in which all `factors` have a level."""

    factors: tuple[str, ...]
    holds: Callable[[Row], bool]


def design(
    factors: Mapping[str, Sequence[Hashable]], strength: int = 2, rules: Sequence[Rule] = (), begun: Sequence[Row] = ()
) -> list[Row]:
    """Rows that cover, with those that are `begun`, every allowed combination of `strength` levels; all combinations of
    fewer factors."""
    names = list(factors)
    forbidden = tuple(_forbidden(rule, factors, names) for rule in rules)
    first = tuple(tuple(factors[name].index(row[name]) for name in names) for row in begun)
    rows = _numbered(tuple(len(levels) for levels in factors.values()), min(strength, len(names)), forbidden, first)
    return [{name: factors[name][number] for name, number in zip(names, row, strict=True)} for row in rows]


Forbidden = tuple[tuple[int, ...], frozenset[tuple[int, ...]]]
"""Places of factors, and the numbers of levels that may not be combined there."""


def _forbidden(rule: Rule, factors: Mapping[str, Sequence[Hashable]], names: list[str]) -> Forbidden:
    every = itertools.product(*(range(len(factors[name])) for name in rule.factors))
    refused = [n for n in every if not rule.holds({f: factors[f][i] for f, i in zip(rule.factors, n, strict=True)})]
    return tuple(names.index(name) for name in rule.factors), frozenset(refused)


@functools.lru_cache(maxsize=256)
def _numbered(
    counts: tuple[int, ...], strength: int, forbidden: tuple[Forbidden, ...], first: tuple[tuple[int, ...], ...]
) -> list[tuple[int, ...]]:
    """The design by numbers alone: factors with as many levels, and the same ones forbidden, have the same. covertable
    is not told of factors with one level: there is nothing to choose."""
    factors = {place: [*range(count)] for place, count in enumerate(counts) if count > 1}
    constraints = [_constraint(places, refused, factors.keys()) for places, refused in forbidden if refused]
    how = {"strength": min(strength, len(factors)), "constraints": constraints}
    how["presets"] = [{place: row[place] for place in factors} for row in first]
    made = make(factors, **how) if factors else [{}]
    rows = [[row.get(place, 0) for place in range(len(counts))] for row in made]
    rows = _needed([row for row in rows if _legal(row, forbidden)], strength)
    rows = [row for row in rows if tuple(row) not in first]
    _even_out(rows, counts, strength, forbidden)
    return [tuple(row) for row in rows]


def _needed(rows: list[list[int]], strength: int) -> list[list[int]]:
    """Those without which a combination is missing: where much is forbidden, covertable makes many that add nothing."""
    covered = Counter(combination for row in rows for combination in _combinations(row, strength))
    kept = []
    for row in reversed(rows):
        own = list(_combinations(row, strength))
        if min(covered[one] for one in own) > 1:
            covered.subtract(own)
        else:
            kept.append(row)
    return kept[::-1]


def _even_out(rows: list[list[int]], counts: tuple[int, ...], strength: int, forbidden: tuple[Forbidden, ...]) -> None:
    """Where a row's level covers nothing new, take the one that is used least: covertable takes the first."""
    covered = Counter(combination for row in rows for combination in _combinations(row, strength))
    used = [Counter(row[place] for row in rows) for place in range(len(counts))]
    for row, place in itertools.product(rows, range(len(counts))):
        level = min(range(counts[place]), key=lambda n: used[place][n])
        if used[place][level] + 1 >= used[place][row[place]]:
            continue
        own = [c for c in _combinations(row, strength) if any(at == place for at, _ in c)]
        other = [*row[:place], level, *row[place + 1 :]]
        if min(covered[c] for c in own) > 1 and _legal(other, forbidden):
            covered.subtract(own)
            used[place].subtract([row[place]])
            row[:] = other
            used[place].update([level])
            covered.update(c for c in _combinations(row, strength) if any(at == place for at, _ in c))


def _legal(row: Sequence[int], forbidden: tuple[Forbidden, ...]) -> bool:
    return all(tuple(row[place] for place in places) not in refused for places, refused in forbidden)


def _combinations(row: Sequence[int], strength: int) -> Iterator[tuple[tuple[int, int], ...]]:
    return itertools.combinations(enumerate(row), strength)


def _constraint(
    places: tuple[int, ...], refused: frozenset[tuple[int, ...]], chosen: Collection[int]
) -> dict[str, Any]:
    """What may not be combined at these places, asked once all factors among them that are `chosen` have a level."""
    return {
        "operator": "fn",
        "requires": [place for place in places if place in chosen],
        "evaluate": lambda row: tuple([row.get(place, 0) for place in places]) not in refused,
    }
