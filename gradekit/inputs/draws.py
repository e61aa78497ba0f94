"""What a check draws its calls from: a part of an entry's domain, with its factors, its covering design and its calls.

A call is a tuple of arguments in the order of the signature. Everything that decides it is picked, one after the other,
by a function `Pick`: a row of the design does that, or Hypothesis. So both make calls by the same code, and a row that
fails can be handed to Hypothesis, as the numbers that it would have picked, to be made smaller.
"""

import bisect
import functools
import itertools
import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from gradekit.domain import ANY_DIMENSIONS, EntryDomain, ResultDomain, Tensor, evaluate, names_in
from gradekit.inputs import covering, layouts
from gradekit.inputs.classes import SizeClass, Sizes
from gradekit.inputs.spec import Input, overlapping
from gradekit.inputs.value_kinds import RANGED, SPECIAL

T = TypeVar("T")
Pick = Callable[[str, Sequence[Any]], Any]  # picks one of the options of what is named

Call = tuple[Any, ...]

UPSTREAM = "upstream"  # the name of the gradient of the result, among the tensors of a check that asks for gradients

OVERLAP = "overlap"  # stands behind a pair of tensors that are views of one storage, the second further on

GIVEN = "given"  # what picks how many optional tensors a call passes

SPREAD, TURNED = "spread", "turned"
"""Stand behind a pair that begins at one address, the second's elements twice as far apart in one dimension, or its
last two dimensions stored in the other order, with elements twice as far apart or not."""

ANY = "any"  # a layout that goes in turn
PART = "part"  # a factor more where several checks share a design: which of them runs a row

SEEDS = 10_000


@dataclass(frozen=True)
class Draws:
    """A part of the domain of `entry`, whose text is `domain`: for each dtype variable, size,
    choice, tensor and scalar what it may be.

    `ranks` are the numbers of dimensions that are not named. `values` has a list of kinds for each tensor, or
    for several tensors (names with spaces between) a list of tuples of kinds. No tensor has more than
    `at_most` elements. `derive` computes derived sizes from all that is known; `upstream` says whether the
    gradient of the result is the last argument; `free` are the sizes of which the check says nothing: all that
    the entry promises are among its calls.
    """

    entry: EntryDomain = field(compare=False)
    domain: str
    dtypes: tuple[tuple[str, tuple[str, ...]], ...]
    ranks: tuple[int, ...]
    sizes: tuple[tuple[str, tuple[SizeClass, ...]], ...]
    choices: tuple[tuple[str, tuple[Any, ...]], ...]
    layouts: tuple[tuple[str, tuple[str, ...]], ...]
    values: tuple[tuple[str, tuple[Any, ...]], ...]
    scalars: tuple[tuple[str, tuple[Any, ...]], ...]
    at_most: int
    aliases: tuple[str, ...] = ()
    upstream: bool = False
    free: frozenset[str] = frozenset()
    derive: Mapping[str, Callable[[Mapping[str, Any]], int]] = field(default_factory=dict, compare=False)

    @functools.cached_property
    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors of a call, in order."""
        result = self.entry.results[0]
        return (*self.entry.tensors, *([Tensor(UPSTREAM, result.shape, result.dtype)] if self.upstream else []))

    @functools.cached_property
    def factors(self) -> dict[str, tuple[Hashable, ...]]:
        """The factors of the design, with their levels."""
        most = max(self.ranks) if self.ranks else 0
        return {
            **{f"dtype {name}": options for name, options in self.dtypes},
            **({"rank": self.ranks} if self.ranks else {}),
            **{f"size {name}": options for name, options in self.sizes if name != ANY_DIMENSIONS or most},
            **dict(self.choices), **dict(self.scalars),
            **{f"layout {name}": self._possible(name, options, most, apart=True) for name, options in self.layouts},
            **{f"values {names}": options for names, options in self.values},
            **({"alias": self.alias_levels} if self.aliases else {}),
            **({GIVEN: self.given_levels} if self.entry.optional else {}),
        }

    def in_turn(self, turn: int, *kinds: str) -> dict[str, Any]:
        """Another level of each factor of these kinds in every turn."""
        return {name: each[turn % len(each)] for name, each in self.factors.items() if name.startswith(kinds)}

    @property
    def given_levels(self) -> tuple[int, ...]:
        """How many of the optional tensors are passed, and None for the rest: all first."""
        return tuple(range(len(self.entry.optional), -1, -1))

    @property
    def alias_levels(self) -> tuple[str, ...]:
        """Two tensors apart, each pair that may be one tensor as one, and as views that overlap; with other steps, too,
        where the second may lie in any way."""
        found = ["", *self.aliases, *(f"{pair} {OVERLAP}" for pair in self.aliases)]
        for pair in self.aliases:
            lies = {*dict(self.layouts)[pair.split()[1]]}
            found += [f"{pair} {SPREAD}"] * (not lies <= {"contiguous", "offset"})
            found += [f"{pair} {TURNED}"] * ("transposed" in lies)
        return tuple(found)

    def design(self, strength: int = 2, part: int = 0, of: int = 1) -> tuple[covering.Row, ...]:
        """The rows of the covering design, those with small tensors first; or one `part` `of` so many that share it."""
        return tuple(row for row in _design(self, strength, of) if row.get(PART, part) == part)

    def call(self, row: covering.Row, turn: int, variants: Mapping[str, int] | None = None) -> tuple[Call, list[int]]:
        """The call of a row, and the numbers by which `picked` would make the same.

        What is no factor (a size within its class, a variant of a layout, seeds) goes in turn, by the row's number; the
        variant of a tensor's layout by the number that `variants` has for the tensor.
        """
        planned = _Planned(self, row, turn, variants or {})
        return self.picked(planned), planned.numbers

    def picked(self, pick: Pick) -> Call:
        """The call that `pick` decides."""
        names: dict[str, Any] = {}
        dtypes = {name: pick(f"dtype {name}", options) for name, options in self.dtypes}
        rank = pick("rank", self.ranks) if self.ranks else 0
        for name, options in self.sizes:
            for one in _unnamed(rank) if name == ANY_DIMENSIONS else [name]:
                names[one] = pick(f"size {one}", _Room(self, one, options, dict(names), rank))
        for name, choice in self.choices:
            names[name] = pick(name, choice)
        names["seed"] = seed = pick("seed of values", range(SEEDS))
        names |= {name: derive(names) for name, derive in self.derive.items()}
        picked = {name: pick(name, options) for name, options in self.scalars}
        scalars = {name: evaluate(one, names) if isinstance(one, str) else one for name, one in picked.items()}
        kinds = self._kinds(pick)
        tensors = {
            tensor.name: self._tensor(tensor, dtypes, rank, kinds[tensor.name], {**names, "own": seed + place}, pick)
            for place, tensor in enumerate(self.tensors)
        }
        if self.aliases and (alias := pick("alias", self.alias_levels)):
            same, other, *how = alias.split()
            tensor = tensors[same]
            apart = sorted({-1, 1, 16, max(tensor.numel // 2, 1), *filter(None, tensor.stride)})
            distance = pick("distance", apart) if how == [OVERLAP] else 0
            steps = _steps(tensor, how, pick)
            if tensors[other].shape == tensor.shape:
                tensors[same], tensors[other] = overlapping(tensor, distance, steps) if how else (tensor, tensor)
        given = pick(GIVEN, self.given_levels) if self.entry.optional else 0
        missing = dict.fromkeys(self.entry.optional[given:])
        return tuple([({**tensors, **scalars, **missing})[name] for name in self._order()])

    def _order(self) -> list[str]:
        scalars = {name for name, _ in self.scalars}
        names = [a.name for a in self.entry.arguments if isinstance(a, Tensor) or a.name in scalars]
        return [*names, *([UPSTREAM] if self.upstream else [])]

    def _kinds(self, pick: Pick) -> dict[str, str]:
        found: dict[str, str] = {}
        for names, options in self.values:
            kinds = pick(f"values {names}", options)
            together = names.split()
            found |= {names: kinds} if len(together) == 1 else dict(zip(together, kinds, strict=True))
        return found

    def _tensor(
        self, tensor: Tensor, dtypes: Mapping[str, str], rank: int, kind: str, names: Mapping[str, Any], pick: Pick
    ) -> Input:
        shape = shape_of(tensor, names, rank)
        options = layouts.preferring(self._possible(tensor.name, dict(self.layouts)[tensor.name], rank), "contiguous")
        layout, _, variant = pick(f"layout {tensor.name}", options).partition(":")
        count = range(layouts.variants(layout, len(shape)))
        stride, offset = layouts.place(
            layout, shape, int(variant) if variant else pick(f"variant {tensor.name}", count)
        )
        dtype = dtypes.get(tensor.dtype, tensor.dtype)
        kind = spelled(tensor, kind)
        kind, seed = (kind.format(**names), 0) if "{seed}" in kind else (kind.format(**names), names["own"])
        return promised(tensor, Input(dtype, shape, stride, offset, kind, seed), names)

    def _possible(self, name: str, options: Sequence[str], rank: int, apart: bool = False) -> tuple[str, ...]:
        dims = len(shape_parts(next(tensor for tensor in self.tensors if tensor.name == name), rank))
        found = _with_variants(tuple(options), dims, dims == 2 and not self.ranks)
        return layouts.told_apart(found, dims) if apart else found

    # --- sizes -------------------------------------------------------------------------------------------------------

    def elements(self, names: Mapping[str, int], rank: int) -> int:
        """The elements of the largest tensor; a size that is not among `names` counts as its smallest."""
        known = {**self._smallest(rank), **names}
        every: list[Tensor | ResultDomain] = [*self.tensors, *self.entry.results]
        return max(int(math.prod(shape_of(tensor, known, rank))) for tensor in every)

    def _smallest(self, rank: int) -> dict[str, int]:
        """Each size at its smallest; sizes that are derived count as 1."""
        found = self._least_by_rank.get(rank)
        if found is None:
            least = {name: options[0].members[0] for name, options in self.sizes}
            unnamed = dict.fromkeys(_unnamed(rank), least.pop(ANY_DIMENSIONS, 1))
            found = self._least_by_rank[rank] = {**dict.fromkeys(self.derive, 1), **least, **unnamed}
        return found

    @functools.cached_property
    def _least_by_rank(self) -> dict[int, dict[str, int]]:
        return {}

    def room(self, name: str, options: Sequence[SizeClass], names: Mapping[str, int], rank: int) -> Sequence[int]:
        """The sizes that are left for `name`, once those in `names` are known."""
        members = sorted({size for one in options for size in one.members})
        room = bisect.bisect_right(members, self.at_most, key=lambda n: self.elements({**names, name: n}, rank))
        fitting = members[: max(room, 1)]
        if self.entry.limits:
            fitting = [n for n in fitting if self._may_be({**names, name: n})] or fitting[:1]
        if len(options) > 1 and all(len(one.members) == 1 and one.name == str(one.members[0]) for one in options):
            return fitting  # listed sizes
        return Sizes(fitting[0], fitting[-1], options)

    def sizes_of(self, row: covering.Row, turn: int) -> dict[str, int]:
        """Sizes of the row's classes, another member of each in every turn; smaller where all would be too large."""
        rank = int(str(row.get("rank", 0)))
        members = {name: self._class(row, name).members for name in self.size_names(rank)}
        at = {name: (turn + 3 * place) % len(members[name]) for place, name in enumerate(members)}
        while not self._is_call(_at(members, at), rank) and any(at.values()):
            largest = max((name for name in at if at[name]), key=lambda name: members[name][at[name]])
            at[largest] -= 1
        return _at(members, at)

    def _is_call(self, sizes: Mapping[str, int], rank: int) -> bool:
        """Whether there is room for tensors of these sizes, and the entry's limits allow them."""
        return self.elements(sizes, rank) <= self.at_most and self._may_be(sizes)

    def _may_be(self, names: Mapping[str, Any]) -> bool:
        """Whether the entry's limits allow these sizes, with each that is not known at its smallest or its largest."""
        return all(self._holds(limit, names) for limit in self.entry.limits)

    def _holds(self, limit: str, names: Mapping[str, Any]) -> bool:
        left = [name for name in names_in(limit) if name not in names]
        if any(name not in self._ends for name in left):
            return True  # a derived size
        return any(
            evaluate(limit, {**names, **dict(zip(left, ends, strict=True))})
            for ends in itertools.product(*(self._ends[name] for name in left))
        )

    @functools.cached_property
    def _ends(self) -> dict[str, tuple[int, int]]:
        every = {name: sorted(n for one in options for n in one.members) for name, options in self.sizes}
        return {name: (sizes[0], sizes[-1]) for name, sizes in every.items()}

    def fits(self, row: covering.Row) -> bool:
        """Whether the smallest members of the row's classes make tensors that are small enough."""
        rank = int(str(row.get("rank", 0)))
        smallest = {name: self._class(row, name).members[0] for name in self.size_names(rank)}
        return self._is_call(smallest, rank)

    def size_names(self, rank: int) -> Iterator[str]:
        """The sizes that are drawn, where so many dimensions have no name: those are numbered."""
        for name, _ in self.sizes:
            yield from _unnamed(rank) if name == ANY_DIMENSIONS else [name]

    def _class(self, row: covering.Row, name: str) -> SizeClass:
        found = row[f"size {ANY_DIMENSIONS if name.startswith(ANY_DIMENSIONS) else name}"]
        assert isinstance(found, SizeClass)
        return found

    def rules(self) -> list[covering.Rule]:
        """What a design may not combine: sizes that are too large together, layouts that need more dimensions."""
        sizes = tuple(f"size {name}" for name, _ in self.sizes if f"size {name}" in self.factors)
        found = [covering.Rule((*sizes, *(["rank"] if self.ranks else [])), self.fits)] if sizes else []
        if len(self.ranks) > 1:
            for name, options in self.layouts:
                possible = {rank: {*self._possible(name, options, rank), ANY} for rank in self.ranks}
                found.append(covering.Rule((f"layout {name}", "rank"), _layout_fits(f"layout {name}", possible)))
        shapes = {tensor.name: tensor.shape for tensor in self.tensors}
        for pair in self.aliases:
            alike = [*zip(*(shapes[name] for name in pair.split()), strict=True)]
            names = {f"size {part}" for parts in alike for part in parts if len({*parts}) > 1}
            if names:
                found.append(
                    covering.Rule((*sorted(names & {*sizes}), "alias"), functools.partial(_one_shape, pair, alike))
                )
        return found

    def laid_out(self, row: covering.Row, turn: int) -> covering.Row:
        """The row with another layout of each tensor in each turn."""
        rank = int(str(row.get("rank", 0)))
        possible = {f"layout {name}": self._possible(name, options, rank, apart=True) for name, options in self.layouts}
        turned = {name: one[(turn + place) % len(one)] for place, (name, one) in enumerate(possible.items())}
        return {name: turned[name] if level == ANY else level for name, level in row.items()}


@functools.lru_cache(maxsize=256)
def _design(draws: Draws, strength: int, parts: int) -> tuple[covering.Row, ...]:
    """Layouts meet one another and all else in rows that show them. Those in which a size is 1, or two tensors share
    memory, are as few as sizes and values need; their layouts go in turn."""
    factors, rules = draws.factors | ({PART: tuple(range(parts))} if parts > 1 else {}), draws.rules()
    first = {f"layout {pair.split()[0]}" for pair in draws.aliases}
    ways = {name: (ANY,) for name, levels in factors.items()
            if name.startswith("layout ") and name not in first and len(levels) > 1}  # fmt: skip
    hiding = {"alias", *(f"size {part}" for tensor in draws.tensors for part in tensor.shape)} if ways else {*()}
    shown = {name: tuple(one for one in levels if name not in hiding or not _hides(one)) or levels
             for name, levels in factors.items()}  # fmt: skip
    rows = covering.design(shown, strength, rules)
    if shown != factors:
        begun = [{**row, **dict.fromkeys(ways, ANY)} for row in rows]
        more = covering.design({**factors, **ways}, strength, rules, begun)
        rows += [draws.laid_out(row, turn) for turn, row in enumerate(more)]

    def weight(numbered: tuple[int, covering.Row]) -> int:
        turn, row = numbered
        return draws.elements(draws.sizes_of(row, turn), int(str(row.get("rank", 0))))

    return tuple(row for _, row in sorted(enumerate(rows), key=weight))


def _one_shape(pair: str, alike: Sequence[tuple[str, ...]], row: covering.Row) -> bool:
    """Whether the tensors of a pair have one shape in a row that makes them one, and more than one element where it
    makes them views of their own: one element shows nothing of strides."""
    if not str(row["alias"]).startswith(pair):
        return True
    levels = [[row.get(f"size {part}", part) for part in parts] for parts in alike]
    is_one = all(one == other and len(getattr(one, "members", "1")) == 1 for one, other in levels)
    return is_one and (row["alias"] == pair or any(str(one) != "1" for one, _ in levels))


def _hides(level: Any) -> bool:
    """Whether strides do not matter in rows with a level: an alias, or sizes of which one is 1."""
    return min(level.members) < 2 if isinstance(level, SizeClass) else bool(level)


def _layout_fits(factor: str, possible: Mapping[Any, set[str]]) -> Callable[[covering.Row], bool]:
    return lambda row: row[factor] in possible[row["rank"]]


class _Planned:
    """A `Pick` that follows a row; `numbers` are the indices of what it has picked, where there was a choice."""

    def __init__(self, draws: Draws, row: covering.Row, turn: int, variants: Mapping[str, int]) -> None:
        self.numbers: list[int] = []
        self._variants = {f"variant {name}": number for name, number in variants.items()}
        self._row, self._turn, self._times = row, turn, 0
        self._sizes = {f"size {name}": size for name, size in draws.sizes_of(row, turn).items()}

    def __call__(self, label: str, options: Sequence[Any]) -> Any:
        picked = self._of(label, options)
        if len(options) > 1:
            self.numbers.append(options.index(picked))
        return picked

    def _of(self, label: str, options: Sequence[Any]) -> Any:
        if label in self._sizes:
            return self._sizes[label]
        if label in self._row:
            return self._row[label]
        self._times += 1
        if label in self._variants:
            return options[self._variants[label] % len(options)]
        turn = self._turn * 7 if len(options) >= SEEDS else self._turn // 2 if label == "axis" else self._turn
        return options[(turn + self._times) % len(options)]


class _Room(Sequence[int]):
    """What `Draws.room` gives, worked out when somebody looks: many sizes are known without it."""

    def __init__(self, draws: Draws, *asked: Any) -> None:
        self._draws, self._asked = draws, asked

    @functools.cached_property
    def _sizes(self) -> Sequence[int]:
        return self._draws.room(*self._asked)

    def __len__(self) -> int:
        return len(self._sizes)

    def __getitem__(self, place: Any) -> Any:
        return self._sizes[place]

    def index(self, size: int, *bounds: int) -> int:
        """The smallest index of `size`."""
        return self._sizes.index(size, *bounds)


def _steps(spec: Input, how: Sequence[str], pick: Pick) -> tuple[int, ...]:
    """The strides of the second of two views that begin at one address, unlike the first's in one dimension or two."""
    if how not in ([SPREAD], [TURNED]):
        return ()
    turned = how == [TURNED]
    steps = (*spec.stride[:-2], *spec.stride[:-3:-1]) if turned else spec.stride
    axis = pick("axis", range(len(steps) + turned)) if steps else 0  # what is turned need not be spread
    return tuple(step * (2 if place == axis else 1) for place, step in enumerate(steps))


def spelled(tensor: Tensor, kind: str) -> str:
    """A kind of values as an input's profile spells it: the special ones with the values that the domain lists."""
    if kind != SPECIAL:
        return kind
    return f"{SPECIAL}:{';'.join(tensor.special)}" if tensor.special else "normal"


# --- shapes ----------------------------------------------------------------------------------------------------------


def promised(tensor: Tensor, spec: Input, names: Mapping[str, Any]) -> Input:
    """The spec of a tensor, with what the domain promises of its values for these sizes."""
    if tensor.range is None:
        return spec
    least, most = (int(evaluate(end, names)) for end in tensor.range)
    kind = f"{spec.profile}:{least}:{most}" if spec.profile in RANGED else spec.profile
    return replace(spec, name=tensor.name, profile=kind, within=(least, most), ascending=tensor.ascending)


def shape_parts(tensor: Tensor | ResultDomain, rank: int) -> tuple[str, ...]:
    """The shape's expressions, with a name for each of `rank` dimensions that have none."""
    return _parts(tuple(tensor.shape), rank)


@functools.cache
def _parts(shape: tuple[str, ...], rank: int) -> tuple[str, ...]:
    return tuple(one for part in shape for one in (_unnamed(rank) if part == ANY_DIMENSIONS else (part,)))


def shape_of(tensor: Tensor | ResultDomain, names: Mapping[str, Any], rank: int) -> tuple[int, ...]:
    """The shape of a tensor for these sizes."""
    return tuple([names[part] if part in names else evaluate(part, names) for part in shape_parts(tensor, rank)])


@functools.cache
def _unnamed(rank: int) -> tuple[str, ...]:
    return tuple(f"{ANY_DIMENSIONS}{number}" for number in range(rank))


@functools.cache
def _with_variants(options: tuple[str, ...], dims: int, each: bool) -> tuple[str, ...]:
    """The layouts that a tensor of so many dimensions can have, `each` dimension that is expanded by itself."""
    counts = {one: layouts.variants(one.partition(":")[0], dims) for one in options}
    ways = {layouts.EXPANDED: [f"{layouts.EXPANDED}:{number}" for number in range(dims + 1)]} if each else {}
    return tuple(dict.fromkeys(itertools.chain(*(ways.get(one, [one]) for one in options if counts[one]))))


def _at(members: Mapping[str, Sequence[int]], at: Mapping[str, int]) -> dict[str, int]:
    return {name: members[name][place] for name, place in at.items()}
