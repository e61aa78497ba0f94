"""Sizes to try for a path: small ones, those that numbers of the submission make special, and combinations of these.

Everything is counted, so that the same submission gets the same inputs on any machine.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gradekit.reuse import SharedCache, shared
from gradekit.size_terms import Leaf
from gradekit.unseen.scope import CallScope

DENSE_ROOT = 20
"""The least root of a number that is looked at beside it: smaller sizes are anyway."""

MOST_KEPT = 16
"""Sets of sizes that are kept: of at most 4 MB each."""

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
                size = scope.nearest(other, base.get(other, 1))
                columns[other].append(alone if other == name else torch.full_like(alone, size))
    if len(scope.names) > 1:
        together = _spread([telling[name] for name in scope.names], close.together)
        for name, column in zip(scope.names, together, strict=True):
            columns[name].append(column)
    return {name: torch.cat(parts) for name, parts in columns.items()}


def _first(scope: CallScope, name: str, dense: int) -> range:
    least, most = scope.range(name)
    return range(0) if scope.listed(name) else range(least, min(most, least + dense) + 1)


_Key = tuple[CallScope, tuple[int, ...], tuple[tuple[str, int], ...], Closeness]
_possible: SharedCache[_Key, dict[str, Tensor]] = shared(MOST_KEPT)


def possible_sizes(
    scope: CallScope, special: Sequence[int], own: Mapping[str, int] | None = None, close: Closeness = CLOSE
) -> dict[str, Tensor]:
    """Those of the sizes to try (`tried`) that are calls which the check may make; not to be written to."""
    key = scope, tuple(special), tuple((own or {}).items()), close
    found = _possible.get(key)
    if found is None:
        columns = tried(scope, special, own, close)
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
