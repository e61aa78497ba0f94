"""What further calls of a check may be: sizes and whole scalars with their ranges, and the tensors that they make."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from gradekit.domain import ANY_DIMENSIONS, ScalarDomain, evaluate, names_in
from gradekit.inputs.draws import Draws, shape_parts
from gradekit.size_terms import Leaf
from gradekit.unseen.host_branches import TracedForm
from gradekit.unseen.laid_out import LaidOut

LARGEST, BEYOND, FAR = 1 << 23, 4, 1 << 11
"""Elements of the largest tensor of a further call; how many times the largest of the check's own it may be; and how
many times where nothing smaller is another way, and the check draws any size that the entry promises."""

MOST_NEAR = 1 << 16
"""Elements of a call whose sizes are about alike."""

MOST_PRODUCT = 1 << 26
"""The product of all sizes of a further call: what a matrix product costs."""


@dataclass(frozen=True)
class CallScope:
    """Calls of a check's `draws` with `rank` dimensions that have no name. `wide` says that sizes which the check lists
    may be any that the entry promises; `laid_out` says how tensors lie, where strides and offsets are to be known."""

    draws: Draws
    rank: int
    wide: bool = False
    beyond: int = 1
    laid_out: tuple[LaidOut, ...] = ()

    @functools.cached_property
    def names(self) -> list[str]:
        """What may be chosen: sizes, then whole scalars."""
        return [*self.sizes, *(scalar.name for scalar in self._scalars)]

    @functools.cached_property
    def sizes(self) -> list[str]:
        """The sizes of dimensions; those without a name are numbered."""
        found: list[str] = []
        for name, _ in self.draws.sizes:
            found += [f"{ANY_DIMENSIONS}{n}" for n in range(self.rank)] if name == ANY_DIMENSIONS else [name]
        return found

    @functools.cached_property
    def _scalars(self) -> list[ScalarDomain]:
        return [s for s in _ranged(self.draws) if s.type == "int"]

    @functools.cached_property
    def _computed(self) -> dict[str, str]:
        """The whole scalars that the sizes decide, and how."""
        drawn = dict(self.draws.scalars)
        scalars = [s for s in self.draws.entry.scalars if s.type == "int" and s.is_computed]
        return {s.name: s.values[0] for s in scalars if drawn.get(s.name) == s.values and len(s.values) == 1}

    @property
    def at_most(self) -> int:
        """Elements of the largest tensor."""
        return min(self.beyond * max(self.draws.at_most, 1 << 12), LARGEST)

    def range(self, name: str) -> tuple[int, int]:
        """The least and the largest that `name` may be."""
        if name not in self._ranges:
            self._ranges[name] = self._range(name)
        return self._ranges[name]

    @functools.cached_property
    def _ranges(self) -> dict[str, tuple[int, int]]:
        return {}

    def _range(self, name: str) -> tuple[int, int]:
        scalar = next((s for s in self._scalars if s.name == name), None)
        if scalar is not None:
            return int(scalar.least or 0), int(scalar.most or 0)
        own = ANY_DIMENSIONS if name.startswith(ANY_DIMENSIONS) else name
        size = self.draws.entry.sizes[own]
        members = [n for one in dict(self.draws.sizes)[own] for n in one.members]
        if own in self.draws.free or self.wide and not size.only:
            return size.least if 0 in members else max(size.least, 1), min(size.most, self.at_most)
        return min(members), max(members)

    def listed(self, name: str) -> Sequence[int] | None:
        """The only sizes that `name` may have; None for all of its range."""
        if name not in self._lists:
            self._lists[name] = self._listed(name)
        return self._lists[name]

    @functools.cached_property
    def _lists(self) -> dict[str, Sequence[int] | None]:
        return {}

    def _listed(self, name: str) -> Sequence[int] | None:
        own = ANY_DIMENSIONS if name.startswith(ANY_DIMENSIONS) else name
        options = dict(self.draws.sizes).get(own, ())
        only = self.draws.entry.sizes[own].only if own in self.draws.entry.sizes else ()
        if only or not options or own in self.draws.free or self.wide:
            return only or None
        listed = all(one.name == str(one.members[0]) for one in options) and len(options) > 1
        return [one.members[0] for one in options] if listed else None

    def near(self, size: int, most: int = MOST_NEAR) -> dict[str, int]:
        """Sizes as near to this one as a call may have them, the outermost made small until it may and has no more than
        `most` elements."""
        found = {name: self.nearest(name, size) for name in self.names}
        for name in self.sizes:
            columns = {one: torch.tensor([n]) for one, n in found.items()}
            if bool(self.allows(columns)) and self.count(found) <= most:
                break
            found[name] = self.nearest(name, 2)
        return found

    def nearest(self, name: str, size: int) -> int:
        """The size nearest to this one that `name` may have."""
        least, most = self.range(name)
        return min(self.listed(name) or (min(max(size, least), most),), key=lambda one: abs(one - size))

    @property
    def limits(self) -> Sequence[str]:
        """Those of the entry that its named sizes decide."""
        return self.draws.entry.limits

    def allows(self, names: Mapping[str, Tensor]) -> Tensor:
        """Which of many choices are calls that the check may make."""
        fits = (self.elements(names) <= self.at_most) & (self._product(names) <= MOST_PRODUCT)
        for name, column in names.items():
            least, most = self.range(name)
            listed = self.listed(name)
            fits &= (column >= least) & (column <= most)
            if listed is not None:
                fits &= torch.isin(column, torch.tensor(listed))
        for limit in self.limits:
            fits &= torch.as_tensor(evaluate(limit, self._known(names)))
        return fits

    def sizes_of(self, form: TracedForm) -> dict[str, int]:
        """The sizes and whole scalars of a traced call, as far as its tensors tell: of "H * G" one where the other
        is known."""
        found: dict[str, int] = {}
        pairs = zip(self.draws.tensors, form.views, strict=False)
        parts = [each for t, view in pairs for each in zip(shape_parts(t, self.rank), view.shape, strict=False)]
        found |= {part: size for part, size in parts if part in self.sizes}
        for part, size in parts:
            for name in [one for one in self.sizes if one not in found and one in part]:
                options = torch.arange(min(size, LARGEST) + 1)
                try:
                    alike = (torch.as_tensor(evaluate(part, {**found, name: options})) == size).nonzero()
                except (ValueError, KeyError):
                    continue
                found |= {name: int(alike[0])} if len(alike) else {}
        places = {argument.name: place for place, argument in enumerate(self.draws.entry.arguments)}
        scalars = {s.name: form.leaves.get(("scalar", places[s.name])) for s in self._scalars}
        return found | {name: value for name, value in scalars.items() if value is not None}

    def elements(self, names: Mapping[str, Tensor]) -> Tensor:
        """The elements of the largest tensor, for each of many choices."""
        known = self._known(names)
        count = len(next(iter(names.values())))
        largest = torch.zeros(count, dtype=torch.float64)
        for shape in self._shapes(known, each_once=True):
            product = torch.ones(count, dtype=torch.float64)
            for part in shape:
                product = product * part
            largest = torch.maximum(largest, product)
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
        """The sizes that host code is given and that are those of a name alone."""
        parts = (shape_parts(tensor, self.rank) for tensor in self.draws.tensors)
        each = (("size", number, axis, part) for number, shape in enumerate(parts) for axis, part in enumerate(shape))
        return {(kind, number, axis): part for kind, number, axis, part in each if part in self.sizes}

    def most_held(self, names: Mapping[str, Tensor]) -> Tensor | None:
        """The largest number that any tensor with a range of sizes holds, such as indices; None where there is none."""
        known = self._known(names)
        ends = [tensor.range[1] for tensor in self.draws.tensors if tensor.range is not None]
        found = [torch.as_tensor(evaluate(end, known)) for end in ends if names_in(end) and names_in(end) <= {*names}]
        return functools.reduce(torch.maximum, found) if found else None

    def strides(self, names: Mapping[str, Tensor]) -> dict[Leaf, Any]:
        """The strides and offsets that host code is given in these calls, of the tensors that are `laid_out`."""
        found: dict[Leaf, Any] = {}
        how = {one.name: one for one in self.laid_out}
        shapes = self._shapes(self._known(names))
        for number, (tensor, shape) in enumerate(zip(self.draws.tensors, shapes, strict=False)):
            if tensor.name in how:
                strides, offset = how[tensor.name].place(tuple(shape))
                found["offset", number] = offset
                found |= {("stride", number, axis): stride for axis, stride in enumerate(strides)}
        return found

    def _product(self, names: Mapping[str, Tensor]) -> Tensor:
        product = torch.ones(len(next(iter(names.values()))), dtype=torch.float64)
        for name in self.sizes:
            product = product * names[name]
        return product

    def _known(self, names: Mapping[str, Any]) -> dict[str, Any]:
        known = dict(names)
        for name in self.draws.derive:
            known[name] = 1
        return known

    def _shapes(self, known: Mapping[str, Any], each_once: bool = False) -> list[list[Any]]:
        every: list[Any] = [*self.draws.tensors, *self.draws.entry.results]
        shapes = [shape_parts(tensor, self.rank) for tensor in every]
        wanted = dict.fromkeys(shapes) if each_once else shapes
        return [[known[part] if part in known else evaluate(part, known) for part in shape] for shape in wanted]


def sizes_alone(draws: Draws) -> Draws:
    """Equal for checks that differ in dtypes, layouts and kinds of values alone: what is solved for one, the other has
    too."""
    return replace(draws, dtypes=(), choices=(), layouts=(), values=(), aliases=())


def fractions(draws: Draws) -> list[ScalarDomain]:
    """The scalars of a check that are floats with a range."""
    return [s for s in _ranged(draws) if s.type == "float"]


def _ranged(draws: Draws) -> list[ScalarDomain]:
    """The scalars that may have any value of their range: a check that lists values of its own may count on them."""
    listed = dict(draws.scalars)
    return [s for s in draws.entry.scalars if listed.get(s.name) == tuple(s.values) and s.is_free]
