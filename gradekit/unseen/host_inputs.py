"""Calls that send host code the ways that a check's examples have not gone."""

import functools
import itertools
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from gradekit.inputs.covering import Row
from gradekit.inputs.draws import Draws, shape_of
from gradekit.inputs.layouts import place, variants
from gradekit.inputs.spec import Input
from gradekit.unseen import Limit
from gradekit.unseen.further import SEED, FurtherCall, Purpose, fits, made, rank_of
from gradekit.unseen.host_branches import HostBranch, HostBranches, Path, TracedForm
from gradekit.unseen.scope import CallScope, layouts_like, sizes_alone
from gradekit.unseen.search import AtEnd, Candidates, OtherWay, Search, Way


@dataclass
class HostInputs:
    """What a check has seen of a submission's host code, its `branches`: `narrowly` are the ways that it has gone with
    sizes that it lists itself, `tried` those that it has made a further call for, `paths` those of the calls that were
    looked at last. Where it `goes_far`, other promised sizes are its own too."""

    branches: HostBranches
    goes_far: bool = True
    narrowly: set[Way] = field(default_factory=set)
    tried: set[Way] = field(default_factory=set)
    paths: list[Path] = field(default_factory=list)
    search: Search = field(default_factory=Search)
    _solved: dict[tuple[Way, CallScope], tuple[list[dict[str, int]], bool]] = field(default_factory=dict)

    def further(self, draws: Draws, forms: Sequence[TracedForm]) -> list[FurtherCall]:
        """Calls for the ways that none of these `forms`, which the check has run, has gone: one for each before another
        for any, since a check has room for few."""
        first = not self.branches.ways
        paths = self.paths = self.branches.look_at([form for form in forms if fits(draws, form)])
        if first:
            self.narrowly |= {(branch, way) for branch, ways in self.branches.ways.items() for way in ways}
        found, asked = dict[HostBranch, list[FurtherCall]](), set[Hashable]()
        by_layout, vain = self.branches.by_layout, Counter[HostBranch]()
        each = ((one, self.branches.unseen_so(one.path, one.step)) for one in self._wanted(paths))
        left = (
            (one, lies) for one, lies in each if not by_layout
            or vain[one.branch] < Limit.IN_VAIN and (lies - asked or not found.get(one.branch))
        )  # fmt: skip
        for turn, (wanted, lies) in enumerate(itertools.islice(left, Limit.SOLVED_ON_HOST * (1 + 2 * by_layout))):
            if not found.get(wanted.branch) or lies - asked:
                calls = [*self._calls(draws, wanted, turn)]
                found.setdefault(wanted.branch, []).extend(calls[:1] if found.get(wanted.branch) else calls)
                asked |= lies if calls else set()
                vain[wanted.branch] += not calls
        calls = [call for turn in itertools.zip_longest(*found.values()) for call in turn if call is not None]
        apart = one_apart(draws, paths[0].form) if first and paths and self.branches.by_layout else ()
        return [*apart, *calls, *self._up_to_numbers(draws, paths)]

    def _laid_out(self, draws: Draws, wanted: OtherWay, wide: bool, own: Mapping[str, int]) -> list[dict[str, int]]:
        """Sizes with strides and offsets: small ones, or at least the call's `own`, where they are known."""
        listed = replace(sizes_alone(draws), layouts=draws.layouts)
        scope = CallScope(listed, rank_of(draws, wanted.path.form), wide, Limit.BEYOND)
        return self.search.solutions(wanted, wanted.path, scope, (), tuple(own.items()))

    def _up_to_numbers(self, draws: Draws, paths: Sequence[Path]) -> Iterator[FurtherCall]:
        """Calls with the largest sizes that comparisons with a number send the way of smaller ones, once in each layout
        that tells calls apart: what holds for small sizes alone, such as indices of 16 bits, shows there first."""
        for path in paths:
            for step in filter(path.is_below, range(len(path.steps))):
                if path.end(step) not in self.branches.ended and (wanted := AtEnd(path, step)).way not in self.tried:
                    calls = self._calls(draws, wanted, 0)
                    each = {sum(arg.numel for arg in one.call if isinstance(arg, Input)): one for one in calls}
                    small = sorted(count for count in each if count <= Limit.LARGER_ELEMENTS)
                    yield from (replace(each[count], purpose=Purpose.VARIED) for count in small[-1:])

    def as_data(self) -> dict[str, Any]:
        """The branches of the check, as the report record holds them."""
        ways = self.branches.ways
        missing = [(branch, not way) for branch, ways in ways.items() if len(ways) == 1 for way in ways]
        missing = sorted(missing, key=lambda one: (one[0].line or 0, one[0].text, one[1]))
        unseen = [{"line": branch.line, "what": branch.says(way, "never ")} for branch, way in missing]
        return {"of": 2 * len(ways), "seen": sum(map(len, ways.values())), "unseen": unseen}

    def _wanted(self, paths: Sequence[Path]) -> Iterator[OtherWay]:
        """The branches that went one way alone or up to their limit, each with its paths, once before twice."""
        met: dict[HostBranch, list[OtherWay]] = {}
        for path in paths:
            for step, asked in enumerate(path.steps):
                if self.branches.unseen(*asked) or self.branches.unseen_so(path, step):
                    met.setdefault(asked[1], []).append(OtherWay(path, step))
        first = sorted(met, key=lambda branch: self._late(met[branch][0]))
        for turn in itertools.zip_longest(*(sorted(met[branch], key=_unclear) for branch in first)):
            yield from (wanted for wanted in turn if wanted is not None)

    def _late(self, wanted: OtherWay) -> tuple[int, ...]:
        """First those for which no call was made, last those that ask if two sizes are equal."""
        asked, terms = wanted.path.steps[wanted.step], wanted.path.origins.terms
        numbers = [terms[n][0] == "number" for n in (asked[0].left, asked[0].right)]
        equal, seen = asked[0].relation == "==" and not any(numbers), not self.branches.unseen(*asked)
        untold, imprecise = _unclear(wanted)
        return self.branches.by_layout and untold, seen, wanted.way in self.tried, equal, imprecise

    def _calls(self, draws: Draws, wanted: OtherWay, turn: int) -> Iterator[FurtherCall]:
        branch, way, form = wanted.branch, wanted.way, wanted.path.form
        is_new = self.branches.unseen(*wanted.path.steps[wanted.step])
        purpose = Purpose.BRANCH if is_new or not self.branches.by_layout else Purpose.BESIDE
        for sizes, narrow in self._sized(draws, wanted, way):
            turns = range(turn, turn + (4 if draws.derive else 1))  # computed sizes may be 1
            each = (made(draws, form, sizes, n, layouts_like(draws, form, n)) for n in turns)
            call = max(each, key=lambda call: min(arg.numel > 1 for arg in call if isinstance(arg, Input)))
            if all(arg.storage_size <= Limit.ELEMENTS for arg in call if isinstance(arg, Input)):
                tried = functools.partial(self._note, way, narrow)
                yield FurtherCall(call, branch.says(way[1]), branch.line, purpose, tried)

    def _note(self, way: Way, narrow: bool) -> None:
        self.tried.add(way)
        self.narrowly |= {way} if narrow else set()

    def _sized(self, draws: Draws, wanted: OtherWay, way: Way) -> list[tuple[dict[str, int], bool]]:
        """With sizes that the check lists, and whether it does; where these do not serve and it did not go there, any
        promised ones, if it goes so far. Where strides decide, they are chosen too."""
        laid_out = self._laid_out(draws, wanted, True, {}) if wanted.step in wanted.path.asked_of_layout else []
        if laid_out:
            return [(laid_out[0], False)]
        chosen, same_path = self._chosen(draws, wanted, way, wide=False)
        narrow = same_path or not self.goes_far or way in self.narrowly
        if not narrow:
            wide, same_path = self._chosen(draws, wanted, way, wide=True)
            chosen, narrow = (chosen, True) if chosen and not same_path else (wide, False)
        sizes = chosen[:1] if way in self.tried else chosen
        lies = self.branches.by_layout and wanted.path.strided and not isinstance(wanted, AtEnd)
        if not (lies or wanted.path.asked_of_layout):
            return [(one, narrow) for one in sizes]
        return [((self._laid_out(draws, wanted, not narrow, one) or [one])[0], narrow) for one in sizes]

    def _chosen(self, draws: Draws, wanted: OtherWay, way: Way, wide: bool) -> tuple[list[dict[str, int]], bool]:
        """Sizes for which the comparison goes the other way; and whether all before it go as they did."""
        farthest = Limit.FAR if draws.free or wide else Limit.BEYOND
        scope = CallScope(sizes_alone(draws), rank_of(draws, wanted.path.form), wide, farthest)
        if (way, scope) not in self._solved:
            is_computed = not isinstance(wanted, AtEnd) and not scope.computed_leaves.isdisjoint(wanted.asked)
            scopes = [*scope.in_each_choice(draws.choices, SEED)] if is_computed else [scope]
            each = itertools.product(((replace(wanted, same_path=same), same) for same in (True, False)), scopes)
            found = (([one | dict(near.given) for one in self.search.solutions(want, wanted.path, near)], same)
                     for (want, same), near in each)  # fmt: skip
            self._solved[way, scope] = next((one for one in found if one[0]), ([], False))
        return self._solved[way, scope]


def varied(draws: Draws, call: FurtherCall, path: Path, form: TracedForm, rows: Sequence[Row]) -> Iterator[FurtherCall]:
    """A call that has become `form`, on a path of its own, with all else that the check is about: what `rows` of its
    design have, and as many of their sizes as take the path; where one does not, so much more than the call has."""
    rank = rank_of(draws, form)
    every = CallScope(sizes_alone(draws), rank, True, Limit.FAR, Limit.LARGER * Limit.LARGER_ELEMENTS)
    own = every.sizes_of(form)
    for turn, row in enumerate(row for row in rows if row.get("rank", rank) == rank):
        wanted = {**own, **row, **draws.sizes_of(row, turn)}
        other: dict[str, Any] = {name: n for name, n in wanted.items() if name in own or name in every.names}
        near = {name: own.get(name, n) for name, n in other.items()}
        each = itertools.product(*(dict.fromkeys((n, near[name] + n, near[name])) for name, n in other.items()))
        among = every.allowed(dict(zip(other, torch.tensor([*each]).T, strict=True)))
        mine = [(name, (row[name], *(one for one in options if one != row[name]))) for name, options in draws.choices]
        for scope in every.in_each_choice(mine, SEED + turn) if draws.derive else [every]:
            columns = scope.computed(among) if scope.given else among
            fits = Candidates(path, scope, columns).taking & scope.allows(columns)
            if bool(fits.any()):
                alike = sum(2 * (columns[name] == n) + (columns[name] == near[name] + n) for name, n in other.items())
                place = int(torch.where(fits, alike, -1).argmax())
                picks = {name: one for name, one in row.items() if not name.startswith("size ") and name not in columns}
                sizes = {name: int(column[place]) for name, column in columns.items()} | dict(scope.given)
                picks |= dict(scope.given)
                if path.asked_of_layout:
                    picks |= _lying(draws, form, [sizes], functools.partial(_lies_like, form))
                yield replace(call, call=made(draws, form, sizes, turn, picks), purpose=Purpose.VARIED)
                break


def one_size_apart(draws: Draws, form: TracedForm) -> Iterator[FurtherCall]:
    """Two calls for each size, of which the second differs in it alone, and in strides where no layout of the check has
    the same: what a submission has kept for the first, such as tiles that divide it, must not serve the second."""
    scope = CallScope(sizes_alone(draws), rank_of(draws, form), True)
    for turn, name in enumerate(scope.sizes if not draws.derive else ()):
        columns = {one: torch.tensor([n, n]) for one, n in scope.near(37 + 2 * turn, 1 << 12).items()}
        columns[name] = torch.tensor([scope.nearest(name, n) for n in (64, 75)])
        first, second = ({one: int(column[place]) for one, column in columns.items()} for place in (0, 1))
        if first != second and bool(scope.allows(columns).all()):
            picks = _lying(draws, form, (first, second), _same_strides)
            told = f"{name} is {second[name]}, after a call in which it was {first[name]}"
            calls = [made(draws, form, sizes, turn, picks) for sizes in (first, second)]
            yield from (FurtherCall(call, told, purpose=Purpose.VARIED) for call in calls)


def one_apart(draws: Draws, form: TracedForm) -> Iterator[FurtherCall]:
    """Calls of sizes that tiles divide, in which one tensor alone is contiguous, or alone has its rows apart."""
    rank, ways = max(draws.ranks, default=0), ("every_second", "sliced_columns")
    sizes = CallScope(sizes_alone(draws), rank, True).near(Limit.WHOLE, Limit.MANY_ELEMENTS)
    apart = {one: way for way in ways for one, each in draws.factors.items() if "layout " in one and way in each}
    for turn, (one, way) in enumerate(apart.items()):
        name, alike = one.removeprefix("layout "), {**apart, one: "contiguous"}
        for told, picks in ((f"{name} alone is contiguous", alike), (f"{name} alone is not contiguous", {one: way})):
            call = made(draws, form, sizes, turn, {"rank": rank, **picks})
            yield FurtherCall(call, told, purpose=Purpose.BESIDE)


def _lying(
    draws: Draws, form: TracedForm, sizes: Sequence[Mapping[str, int]], suits: Callable[[int, int, list[Any]], bool]
) -> dict[str, Any]:
    """What picks for each tensor the first layout that `suits` it, by the tensor's number, the number of the layout's
    variant, and the strides that it has at each of these sizes; nothing where none does."""
    picks: dict[str, Any] = {}
    for number, tensor in enumerate(draws.tensors):
        shapes = [shape_of(tensor, one, rank_of(draws, form)) for one in sizes]
        words = ((one, one.partition(":")[0]) for one in dict(draws.layouts)[tensor.name])
        every = ((one, word, n) for one, word in words for n in range(variants(word, len(shapes[0]))))
        suited = ((one, n) for one, word, n in every if suits(number, n, [place(word, s, n)[0] for s in shapes]))
        if found := next(suited, None):
            picks |= {f"layout {tensor.name}": found[0], f"variant {tensor.name}": found[1]}
    return picks


def _same_strides(_: int, variant: int, strides: Sequence[tuple[int, ...]]) -> bool:
    """Whether the first variant of a layout has the same strides at all sizes."""
    return variant == 0 and len({*strides}) == 1


def _lies_like(form: TracedForm, number: int, _: int, strides: Sequence[tuple[int, ...]]) -> bool:
    """Whether the same strides are 0, and the same are larger, as those of the call's tensor of this number."""
    return number < len(form.views) and _order(strides[0]) == _order(form.views[number].stride)


def _order(stride: Sequence[int]) -> tuple[tuple[bool, ...], list[int]]:
    return tuple(step == 0 for step in stride), sorted(range(len(stride)), key=stride.__getitem__)


def _unclear(wanted: OtherWay) -> tuple[int, int]:
    """How much a path's call hides, and how many tensors are no float32, whose rounding hides mistakes."""
    return wanted.path.form.hides, sum(view.dtype != "float32" for view in wanted.path.form.views)
