"""What further calls of a check may be: sizes and whole scalars with their ranges, and the tensors that they make."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from gradekit.domain import ANY_DIMENSIONS, ScalarDomain, evaluate, names_in
from gradekit.inputs.draws import Draws, shape_parts
from gradekit.inputs.layouts import row_major, variants
from gradekit.prove.host_terms import Leaf
from gradekit.unseen import Limit
from gradekit.unseen.host_branches import TracedForm


@dataclass(frozen=True)
class CallScope:
    """Calls of a check's `draws` with `rank` dimensions that have no name, and at `most` so many elements of a tensor.
    `wide` says that sizes which the check lists may be any that the entry promises. Sizes that are computed follow from
    what is `given` beside sizes, a choice for each; where nothing is, they are anything."""

    draws: Draws
    rank: int
    wide: bool = False
    beyond: int = 1
    most: int = Limit.ELEMENTS
    given: tuple[tuple[str, Any], ...] = ()

    @functools.cached_property
    def content(self) -> Hashable:
        """Equal for scopes of the same calls, whichever checks' they are."""
        sizes = [(name, *self.range(name), tuple(self.listed(name) or ())) for name in self.names]
        draws = replace(self.draws, sizes=(), free=frozenset(), at_most=0)
        return draws, draws.entry.name, self.rank, self.at_most, self.given, tuple(sizes)

    @functools.cached_property
    def names(self) -> list[str]:
        """What may be chosen: sizes, then whole scalars."""
        return [*self.sizes, *(scalar.name for scalar in self._scalars)]

    @functools.cached_property
    def sizes(self) -> list[str]:
        """The sizes of dimensions; those without a name are numbered."""
        return [*self.draws.size_names(self.rank)]

    @functools.cached_property
    def _scalars(self) -> list[ScalarDomain]:
        listed = dict(self.draws.scalars)  # a check that lists values of its own may count on them
        free = (s for s in self.draws.entry.scalars if s.type == "int" and s.is_free)
        return [s for s in free if listed.get(s.name) == tuple(s.values)]

    @functools.cached_property
    def _computed(self) -> dict[str, str]:
        """The whole scalars that the sizes decide, and how."""
        drawn = dict(self.draws.scalars)
        scalars = [s for s in self.draws.entry.scalars if s.type == "int" and s.is_computed]
        return {s.name: s.values[0] for s in scalars if drawn.get(s.name) == s.values and len(s.values) == 1}

    @property
    def at_most(self) -> int:
        """Elements of the largest tensor."""
        return min(self.beyond * max(self.draws.at_most, 1 << 12), self.most)

    def range(self, name: str) -> tuple[int, int]:
        """The least and the largest that `name` may be."""
        least, most, _ = self._allowed[name]
        return least, most

    def listed(self, name: str) -> Sequence[int] | None:
        """The only sizes that `name` may have; None for all of its range."""
        return self._allowed[name][2]

    @functools.cached_property
    def _linked(self) -> list[set[str]]:
        """The sizes that stand together in shapes: of others, work is no product."""
        found, sizes = list[set[str]](), {*self.sizes}
        every: list[Any] = [*self.draws.tensors, *self.draws.entry.results]
        for tensor in every:
            parts = shape_parts(tensor, self.rank)
            own = {name for part in parts for name in ({part} if part in sizes else names_in(part))} & sizes
            found = [one for one in found if not one & own] + [own.union(*(one for one in found if one & own))]
        return found

    @functools.cached_property
    def _allowed(self) -> dict[str, tuple[int, int, Sequence[int] | None]]:
        found: dict[str, Any] = {s.name: (int(s.least or 0), int(s.most or 0), None) for s in self._scalars}
        every = dict(self.draws.sizes)
        for name in self.sizes:
            own = ANY_DIMENSIONS if name.startswith(ANY_DIMENSIONS) else name
            size, options, is_free = self.draws.entry.sizes[own], every[own], own in self.draws.free
            members = [n for one in options for n in one.members]
            least, most = min(members), max(members)
            if is_free or self.wide and not size.only:
                least = size.least if 0 in members else max(size.least, 1)
                most = min(size.most, self.at_most)
            listed = len(options) > 1 and all(one.name == str(one.members[0]) for one in options)
            own_list = [one.members[0] for one in options] if listed and not (is_free or self.wide) else None
            found[name] = least, most, size.only or own_list
        return found

    def near(self, size: int, most: int = Limit.NEAR_ELEMENTS) -> dict[str, int]:
        """Sizes as near to this one as a call may have them, the outermost made small until it may and has no more than
        `most` elements."""
        found = {name: self.nearest(name, size) for name in self.names}
        for name in self.sizes:
            if self.has(found) and self.count(found) <= most:
                break
            found[name] = self.nearest(name, 2)
        return found

    def nearest(self, name: str, size: int) -> int:
        """The size nearest to this one that `name` may have."""
        least, most = self.range(name)
        return min(self.listed(name) or (min(max(size, least), most),), key=lambda one: abs(one - size))

    def allows(self, names: Mapping[str, Tensor]) -> Tensor:
        """Which of many choices are calls that the check may make."""
        fits = self.elements(names) <= self.at_most
        for linked in self._linked:
            fits &= math.prod((names[name].double() for name in linked), start=torch.ones(1)) <= Limit.PRODUCT
        for name, column in ((name, names[name]) for name in self.names):
            least, most = self.range(name)
            listed = self.listed(name)
            fits &= (column >= least) & (column <= most)
            if listed is not None:
                fits &= torch.isin(column, torch.tensor(listed))
        for limit in self.draws.entry.limits:
            fits &= torch.as_tensor(evaluate(limit, self._known(names)))
        return fits

    def has(self, sizes: Mapping[str, int]) -> bool:
        """Whether the check may make a call of these sizes and whole scalars."""
        return bool(self.allows({name: torch.tensor([size]) for name, size in sizes.items()}))

    def allowed(self, names: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Those of many choices that are such calls."""
        fits = self.allows(names)
        return {name: column[fits] for name, column in names.items()}

    def sizes_of(self, form: TracedForm) -> dict[str, int]:
        """The sizes and whole scalars of a traced call, as far as its tensors tell: of "H * G" one where the other
        is known."""
        found: dict[str, int] = {}
        pairs = zip(self.draws.tensors, form.views, strict=False)
        parts = [each for t, view in pairs for each in zip(shape_parts(t, self.rank), view.shape, strict=False)]
        found |= {part: size for part, size in parts if part in self.sizes}
        for part, size in parts:
            for name in [one for one in self.sizes if one not in found and one in part]:
                options = torch.arange(min(size, Limit.ELEMENTS) + 1)
                try:
                    alike = (torch.as_tensor(evaluate(part, {**found, name: options})) == size).nonzero()
                except (ValueError, KeyError):
                    continue
                found |= {name: int(alike[0])} if len(alike) else {}
        places = {argument.name: place for place, argument in enumerate(self.draws.entry.arguments)}
        scalars = {s.name: form.leaves.get(("scalar", places[s.name])) for s in self._scalars}
        scalars |= {said: form.leaves[leaf] for name, said in self._computed.items()
                    if said in self.sizes and (leaf := ("scalar", places[name])) in form.leaves}  # fmt: skip
        return found | {name: value for name, value in scalars.items() if value is not None}

    def elements(self, names: Mapping[str, Tensor]) -> Tensor:
        """The elements of the largest tensor, for each of many choices."""
        known = self._known(names)
        count = len(next(iter(names.values())))
        largest = torch.zeros(count, dtype=torch.float64)
        for shape in self._shapes(known, each_once=True):
            largest = torch.maximum(largest, math.prod(shape, start=torch.ones(count, dtype=torch.float64)))
        return largest

    def count(self, sizes: Mapping[str, int]) -> float:
        """The elements of the largest tensor of one call."""
        return float(self.elements({name: torch.tensor([size]) for name, size in sizes.items()}))

    def leaves(self, names: Mapping[str, Any]) -> dict[Leaf, Any]:
        """The numbers that host code is given in these calls, but for strides."""
        known = self._known(names)
        found: dict[Leaf, Any] = {}
        for number, shape in enumerate(self._shapes(known)[: len(self.draws.tensors)]):
            found |= {("size", number, axis): n for axis, n in enumerate(shape)}
        places = {argument.name: place for place, argument in enumerate(self.draws.entry.arguments)}
        found |= {("scalar", places[name]): evaluate(said, known) for name, said in self._computed.items()}
        return found | {("scalar", places[s.name]): names[s.name] for s in self._scalars if s.name in names}

    @functools.cached_property
    def named(self) -> dict[Leaf, str]:
        """The sizes that host code is given, as expressions."""
        parts = enumerate(shape_parts(tensor, self.rank) for tensor in self.draws.tensors)
        return {("size", number, axis): part for number, shape in parts for axis, part in enumerate(shape)}

    def _known(self, names: Mapping[str, Any]) -> dict[str, Any]:
        return {**dict.fromkeys(self.draws.derive, 2), **names}  # whatever it is, strides count

    def computed(self, names: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Many choices with the sizes that are computed of each."""
        rows = [dict(zip(names, row, strict=True)) for row in torch.stack([*names.values()]).T.tolist()]
        each = ((name, [size({**row, **dict(self.given)}) for row in rows]) for name, size in self.draws.derive.items())
        return {**names, **{name: torch.tensor(sizes, dtype=torch.int64) for name, sizes in each}}

    def _shapes(self, known: Mapping[str, Any], each_once: bool = False) -> list[list[Any]]:
        every: list[Any] = [*self.draws.tensors, *self.draws.entry.results]
        shapes = [shape_parts(tensor, self.rank) for tensor in every]
        wanted = dict.fromkeys(shapes) if each_once else shapes
        return [[known[part] if part in known else evaluate(part, known) for part in shape] for shape in wanted]


def choices_of(draws: Draws) -> list[tuple[tuple[str, Any], ...]]:
    """What a check chooses beside sizes, dtypes, layouts and values, each as names with what they are; one without any
    where there is nothing to choose."""
    each = itertools.product(*(options for _, options in draws.choices))
    return [tuple(zip((name for name, _ in draws.choices), chosen, strict=True)) for chosen in each]


def sizes_alone(draws: Draws) -> Draws:
    """Equal for checks that differ in dtypes, layouts and kinds of values alone: what is solved for one, the other has
    too."""
    return replace(draws, dtypes=(), choices=(), layouts=(), values=(), aliases=())


# --- sizes to try for a path: small ones, special ones, and combinations of these -------------------------------------

PRIME = (1 << 31) - 1
"""Steps of a walk through combinations are counted modulo this one (a multiplicative generator's modulus)."""


CLOSE, ROUGH = 4096, 512
"""Up to which size all are tried, for each dimension where there are two, fewer where there are more: for host code,
which may ask for anything; and for kernels, whose masks and loops small sizes and their constants decide."""


def tried(
    scope: CallScope, special: Sequence[int], own: Mapping[str, int] | None = None, close: int = CLOSE
) -> dict[str, Tensor]:
    """Sizes to try, one column for each name: each dimension alone over all that is small and special, the others at
    their simplest, or as a call has them that is taken for its `own`; then combinations of those that are telling. Of
    a size that the check lists, what it lists."""
    telling = {name: tuple(scope.listed(name) or _telling(special, *scope.range(name))) for name in scope.names}
    if scope.given:
        return dict(zip(scope.names, _spread((*telling.values(),), ROUGH), strict=True))
    columns: dict[str, list[Tensor]] = {name: [] for name in scope.names}
    for name in scope.names:
        least, most = scope.range(name)
        end = least if scope.listed(name) else 1 + min(most, least + min(close, 2 * close // len(scope.names)))
        alone = torch.cat([torch.tensor(telling[name]), torch.arange(least, max(least, end))]).unique()
        for base in (*(dict.fromkeys(scope.names, n) for n in (1, 2, 33)), *([own] if own else ())):
            for other in scope.names:
                size = scope.nearest(other, base.get(other, 1))
                columns[other].append(alone if other == name else torch.full_like(alone, size))
    if len(scope.names) > 1:
        together = _spread((*telling.values(),), Limit.TOGETHER * close)
        for name, column in zip(scope.names, together, strict=True):
            columns[name].append(column)
    return {name: torch.cat(parts) for name, parts in columns.items()}


def possible_sizes(
    scope: CallScope, special: Sequence[int], own: Mapping[str, int] | None = None, close: int = CLOSE
) -> dict[str, Tensor]:
    """Those of the sizes to try (`tried`) that are calls which the check may make."""
    columns = tried(scope, special, own, close)
    columns = scope.allowed(columns) if columns else {}
    return scope.allowed(scope.computed(columns)) if scope.given else columns


@functools.lru_cache(maxsize=8)
def _spread(options: tuple[tuple[int, ...], ...], most: int) -> list[Tensor]:
    """Combinations of the options, a column for each: all if they are few, else a part of them."""
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
    return (n, n + 1, n - 1, *((root, root + 1) if root >= Limit.ROOT else ()))


def constants(terms: Sequence[Leaf]) -> list[int]:
    """The numbers among the terms, in order, each once."""
    return list(dict.fromkeys(int(t[1]) for t in terms if t[0] == "number" and 1 < abs(int(t[1])) < 1 << 40))


# --- how the tensors of a call lie in memory, as the layouts of the check have it -------------------------------------


def layouts_like(draws: Draws, form: TracedForm, turn: int = 0) -> dict[str, str]:
    """What picks layouts like those of a traced call: for tensors that are not contiguous, another of the check's in
    each turn."""
    found = {}
    for tensor, view in zip(draws.tensors, form.views, strict=False):
        plain, options = view.stride == row_major(view.shape), dict(draws.layouts)[tensor.name]
        possible = [one for one in options if variants(one.partition(":")[0], len(view.shape))]
        alike = [one for one in possible if (one.partition(":")[0] in ("contiguous", "offset")) is plain]
        if plain and view.offset and "offset" in alike or not plain and alike:
            found[f"layout {tensor.name}"] = "offset" if plain else alike[turn % len(alike)]
    return found
