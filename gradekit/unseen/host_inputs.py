"""Calls that send host code the ways that a check's examples have not gone."""

import functools
import itertools
import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from gradekit.domain import MOST_ELEMENTS
from gradekit.inputs.covering import Row
from gradekit.inputs.draws import OVERLAP, SPREAD, TURNED, Draws, shape_parts
from gradekit.inputs.spec import Input
from gradekit.inputs.value_kinds import CHOSEN
from gradekit.prove.host_terms import holds, polynomials, variable
from gradekit.prove.solve import Solver
from gradekit.prove.terms import equal, term, var
from gradekit.unseen import Limit
from gradekit.unseen.further import SEED, Decision, FurtherCall, Purpose, fits, like, made, rank_of
from gradekit.unseen.host_branches import HostBranch, HostBranches, Path, TracedForm
from gradekit.unseen.scope import CallScope, choices_of, layouts_like, sizes_alone
from gradekit.unseen.search import AtEnd, Candidates, OtherWay, Search, Way


@dataclass
class HostInputs:
    """What a check has seen of a submission's host code, its `branches`: `tried` are the ways that it has made another
    call for, `paths` those of the calls that were looked at last. Where it `goes_far`, it tries all promised sizes."""

    branches: HostBranches
    goes_far: bool = True
    tried: set[Way] = field(default_factory=set)
    paths: list[Path] = field(default_factory=list)
    search: Search = field(default_factory=Search)

    def further(self, draws: Draws, forms: Sequence[TracedForm]) -> list[FurtherCall]:
        """Calls for the ways that none of these `forms`, which the check has run, has gone: one for each before another
        for any, since a check has room for few."""
        first = not self.branches.ways
        paths = self.paths = self.branches.look_at([form for form in forms if fits(draws, form)])
        found, asked, vain = dict[HostBranch, list[FurtherCall]](), set[Hashable](), Counter[HostBranch]()
        left = Limit.SOLVED_ON_HOST * (1 + 2 * self.branches.by_layout)
        for one in self._wanted(paths):
            mine, lies = found.setdefault(one.branch, []), self.branches.unseen_so(one.path, one.step)
            is_new = vain[one.branch] < Limit.IN_VAIN and (not mine or lies - asked)
            if is_new and left:
                calls, left = [*self._calls(draws, one)], left - 1
                mine += calls[:1] if mine else calls
                asked |= lies if calls else set()
                vain[one.branch] += not calls
        calls = [call for turn in itertools.zip_longest(*found.values()) for call in turn if call is not None]
        return [*(one_apart(draws, paths[0].form) if first and paths and self.branches.by_layout else ()), *calls]

    def _laid_out(self, draws: Draws, wanted: OtherWay, wide: bool, own: Mapping[str, int]) -> list[dict[str, int]]:
        """Sizes with strides and offsets: small ones, or at least the call's `own`, where they are known."""
        listed = replace(sizes_alone(draws), layouts=draws.layouts)
        scope = CallScope(listed, rank_of(draws, wanted.path.form), wide, Limit.BEYOND)
        return self.search.solutions(wanted, wanted.path, scope, (), tuple(own.items()))

    def last(self, draws: Draws) -> Iterator[FurtherCall]:
        """Small calls with the largest sizes that comparisons with a number send the way of smaller ones, once in each
        layout that tells calls apart: what holds for small sizes alone, such as indices of 16 bits, shows there first.
        Then such for ways that none has gone together."""
        ends = (AtEnd(path, step) for path in self.paths for step in filter(path.is_below, range(len(path.steps))))
        met = self.branches.ended | self.tried
        for wanted in (*ends, *self._never_together()[: Limit.PAIRS * self.goes_far]):
            if wanted.kept is not None or wanted.way not in met:
                calls = self._calls(draws, wanted)
                each = {max(arg.numel for arg in one.call if isinstance(arg, Input)): one for one in calls}
                if small := [count for count in each if count <= Limit.NEAR_ELEMENTS]:
                    met |= {wanted.way}
                    yield replace(each[max(small)], purpose=Purpose.VARIED)

    def _never_together(self) -> list[OtherWay]:
        """Two ways of comparisons of unlike sizes that calls have gone each, and none has both: the rarest first."""
        ways: list[set[Way]] = [{(asked, one.held) for one, asked in path.steps} for path in self.paths]
        met: set[tuple[Way, Way]] = {pair for one in ways for pair in itertools.permutations(one, 2)}
        often, found = Counter(way for one in ways for way in one), dict[frozenset[Way], OtherWay]()
        for path in self.paths:
            of_sizes = [step for step, _ in enumerate(path.steps) if step not in path.asked_of_layout]
            for step, kept in itertools.permutations(of_sizes, 2):
                wanted, other = OtherWay(path, step, False, kept), OtherWay(path, kept)
                pair = wanted.way, (other.branch, not other.way[1])
                if pair[0] in often and pair not in met and wanted.asked.isdisjoint(other.asked):
                    found.setdefault(frozenset(pair), wanted)
        return [found[pair] for pair in sorted(found, key=lambda pair: sum(often[way] for way in pair))]

    def decisions(self, draws: Draws) -> Iterator[Decision]:
        """The ways that host code can go in promised calls, and whether a call has."""
        solver = Solver()
        for branch, ways in self.branches.ways.items():
            if "address" in branch.text:
                continue  # checks with offsets have both ways of what asks how it is aligned
            yield from ((branch.line, branch.says(way), True) for way in ways)
            if len(ways) == 1 and not all(_is_forced(draws, *one, solver) for one in self.branches.asking(branch)):
                yield branch.line, branch.says(False in ways), False

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

    def _calls(self, draws: Draws, wanted: OtherWay) -> Iterator[FurtherCall]:
        branch, way, form = wanted.branch, wanted.way, wanted.path.form
        is_new = self.branches.unseen(*wanted.path.steps[wanted.step])
        purpose = Purpose.BRANCH if is_new or not self.branches.by_layout else Purpose.BESIDE
        tried = functools.partial(self.tried.add, way)
        for sizes in self._sized(draws, wanted):
            turns = range(4) if draws.derive else [None]  # computed sizes may be 1
            each = (made(draws, form, sizes, n, layouts_like(draws, form, n or 0)) for n in turns)
            call = max(each, key=lambda call: min(arg.numel > 1 for arg in call if isinstance(arg, Input)))
            if all(arg.storage_size <= Limit.ELEMENTS for arg in call if isinstance(arg, Input)):
                yield FurtherCall(call, branch.says(way[1]), branch.line, purpose, tried, of_sizes=True)

    def _sized(self, draws: Draws, wanted: OtherWay) -> list[dict[str, int]]:
        """With all comparisons before it as they were rather than most, and with sizes that the check lists rather than
        any promised ones, if it goes so far. Where strides decide, they are chosen too."""
        own = wanted.step in wanted.path.asked_of_layout and self._laid_out(draws, wanted, True, {})
        if own:
            return own[:1]
        ways = itertools.product((True, False), (False, True)[: 1 + self.goes_far])
        each = ((self._chosen(draws, replace(wanted, same_path=same), wide), wide) for same, wide in ways)
        chosen, wide = next((one for one in each if one[0]), ([], False))
        sizes = chosen[:1] if wanted.way in self.tried else chosen
        lies = self.branches.by_layout and wanted.path.strided and not isinstance(wanted, AtEnd)
        if not (lies or wanted.path.asked_of_layout):
            return sizes
        return [(self._laid_out(draws, wanted, wide, one) or [one])[0] for one in sizes]

    def _chosen(self, draws: Draws, wanted: OtherWay, wide: bool) -> list[dict[str, int]]:
        """Sizes for which the comparison goes the other way."""
        farthest = Limit.FAR if draws.free or wide else Limit.BEYOND
        scope = CallScope(sizes_alone(draws), rank_of(draws, wanted.path.form), wide, farthest)
        is_computed = not isinstance(wanted, AtEnd) and any(scope.named.get(n) in draws.derive for n in wanted.asked)
        chosen = choices_of(draws) if is_computed else ()
        scopes = [replace(scope, given=(*one, ("seed", SEED))) for one in chosen] or [scope]
        each = ((self.search.solutions(wanted, wanted.path, near), dict(near.given)) for near in scopes)
        return next(([one | given for one in sizes] for sizes, given in each if sizes), [])


def varied(draws: Draws, call: FurtherCall, path: Path, form: TracedForm, rows: Sequence[Row]) -> Iterator[FurtherCall]:
    """A call that has become `form`, on a path of its own, with all else that the check is about: what `rows` of its
    design have, their sizes where these are larger, and else so much more, where that takes the path too. Where layouts
    decide, those with a level that no call before had have its very strides and offsets."""
    most = Limit.LARGER * Limit.NEAR_ELEMENTS
    scope = CallScope(sizes_alone(draws), rank_of(draws, form), True, Limit.FAR, most)
    own, kept = scope.sizes_of(form), ("size ", "rank", *(["layout ", "alias"] if path.asked_of_layout else []))
    lies = {" ".join(map(str, leaf)): n for leaf, n in form.leaves.items() if leaf[0] in ("stride", "offset")}
    dtypes_of = lambda picks: tuple(level for name, level in picks.items() if name.startswith("dtype "))
    met = Counter([dtypes_of(like(draws, form))])
    rows = sorted(rows, key=lambda row: met.update([dtypes_of(row)]) or met[dtypes_of(row)])  # each dtype before again
    levels = set[tuple[str, Any]]()  # of calls that lie as this one does
    for turn, row in enumerate(row for row in rows if row.get("rank", scope.rank) == scope.rank):
        own_levels = {level for level in row.items() if not level[0].startswith(kept)}
        others, same = draws.sizes_of(row, turn), path.asked_of_layout and not own_levels <= levels
        levels |= own_levels if same else set()
        near = {**others, **own}
        pairs = ((name, n, others.get(name, n)) for name, n in near.items())
        columns = {name: torch.tensor([n + other if other < n else other, n]) for name, n, other in pairs}
        allowed = scope.allows(columns)
        place = 0 if not same and bool((Candidates(path, scope, columns).taking & allowed)[0]) else 1
        sizes = {name: int(column[place]) for name, column in columns.items()}
        picks: dict[str, Any] = layouts_like(draws, form, turn) if path.asked_of_layout else {}
        picks |= {name: one for name, one in row.items() if not name.startswith(kept) and name not in sizes}
        if bool(allowed[place]):
            laid_out = sizes | lies if same else sizes
            yield replace(call, call=made(draws, form, laid_out, turn, picks), purpose=Purpose.VARIED)


def one_size_apart(draws: Draws, form: TracedForm) -> Iterator[FurtherCall]:
    """Two calls for each size, which alone differs in the second, or for each two, which are exchanged; and strides,
    where the check has no slices. What is kept for the first, such as tiles or a plan, must not serve the second."""
    scope = CallScope(sizes_alone(draws), next(filter(None, draws.ranks), 0), True)
    both = itertools.combinations_with_replacement(scope.sizes if not draws.derive else (), 2)
    for turn, (name, other) in enumerate(both):
        near, ends = scope.near(37 + 2 * turn, 1 << 12), [scope.nearest(name, n) for n in (64, 75)]
        first, second = (near | {other: scope.nearest(other, b), name: a} for a, b in (ends, ends[::-1]))
        if first != second and scope.has(first) and scope.has(second):
            told = f"{name} is {second[name]}, after a call in which it was {first[name]}"
            every = first, second, {one: max(first[one], second[one]) for one in near}
            *calls, wide = (made(draws, form, sizes, turn, {"rank": scope.rank}) for sizes in every)
            sliced = ["sliced_columns" in dict(draws.layouts)[tensor.name] for tensor in draws.tensors]
            for call in calls:
                left, pairs = iter(sliced), zip(call, wide, strict=True)
                same = [replace(a, stride=b.stride) if isinstance(a, Input) and next(left) else a for a, b in pairs]
                yield FurtherCall(tuple(same), told, purpose=Purpose.VARIED)


def one_apart(draws: Draws, form: TracedForm) -> Iterator[FurtherCall]:
    """Calls of sizes that tiles divide, in which one tensor alone is contiguous, or alone has its rows apart."""
    rank, ways = max(draws.ranks, default=0), ("every_second", "stepped", "sliced_columns")
    sizes = CallScope(sizes_alone(draws), rank, True).near(Limit.WHOLE, Limit.MANY_ELEMENTS)
    apart = {one: way for way in ways for one, each in draws.factors.items() if "layout " in one and way in each}
    for turn, (one, way) in enumerate(apart.items()):
        name, alike = one.removeprefix("layout "), {**apart, one: "contiguous"}
        for told, picks in ((f"{name} alone is contiguous", alike), (f"{name} alone is not contiguous", {one: way})):
            call = made(draws, form, sizes, turn, {"rank": rank, **picks})
            yield FurtherCall(call, told, purpose=Purpose.BESIDE)


def of_one_memory(draws: Draws, form: TracedForm) -> Iterator[FurtherCall]:
    """Calls in which two tensors of a kind are one, or views of one memory: at another offset, or with other steps
    along one dimension, also where the last two dimensions are exchanged; of tensors that nothing writes."""
    hang_together = {name for names, options in draws.values for name in names.split() if "{seed}" in f"{options}"}
    free = [one for one in draws.tensors if not (one.written or one.range or one.name in hang_together)]
    kinds = [(one.dtype, len(one.shape), one.name) for one in free]
    pairs = [f"{a[2]} {b[2]}" for a, b in itertools.combinations(kinds, 2) if a[:2] == b[:2]]
    asked = {*draws.aliases, *([] if draws.upstream else {*pairs} - {*draws.entry.aliases})}
    rank, are_views = max(draws.ranks, default=0), any(len(ways) > 1 for _, ways in draws.layouts)
    sizes = CallScope(sizes_alone(draws), rank, True).near(Limit.SQUARE)
    for pair in (one for one in pairs if one in asked and are_views):
        dims = next(len(shape_parts(one, rank)) for one in draws.tensors if one.name in pair.split())
        for way, axis in itertools.product(("", OVERLAP, TURNED, SPREAD), range(dims + 1)):
            picks = {"rank": rank, "alias": f"{pair} {way}".rstrip(), "axis": axis}
            call = made(replace(draws, aliases=(pair,)), form, sizes, axis, picks)
            yield FurtherCall(call, f"{pair.replace(' ', ' and ')} share memory", purpose=Purpose.BESIDE)


def far_apart(draws: Draws, form: TracedForm, names: Collection[str]) -> Iterator[FurtherCall]:
    """Calls in which the elements of one of these tensors lie so far apart along a dimension that only the last of them
    are beyond what 32 bits reach."""
    scope = CallScope(sizes_alone(draws), rank_of(draws, form), True)
    for number, tensor in enumerate(draws.tensors):
        if tensor.name in names:
            sizes = scope.near(Limit.FEW) | {tensor.far: scope.nearest(tensor.far, 3)}
            step = (1 << 31) // max(sizes[tensor.far] - 1, 2) // 16 * 16 + 16
            axis = shape_parts(tensor, scope.rank).index(tensor.far)
            chosen = sizes | {f"offset {number}": 0, f"stride {number} {axis}": step}
            told = f"{tensor.name} has a stride of {step:,}, so that offsets pass 2**31"
            yield FurtherCall(made(draws, form, chosen, number, {}), told, purpose=Purpose.VARIED)


def beyond_half(draws: Draws, form: TracedForm) -> Iterator[FurtherCall]:
    """A call whose upstream gradient is large in the first half of its rows and as far below zero in the second: what
    sums it in parts passes what float16 holds, though the whole is 0."""
    rank = max(draws.ranks, default=0)
    sizes = CallScope(sizes_alone(draws), rank, True).near(8 if rank else 64)
    call = made(draws, form, sizes, 0, {"rank": rank})
    *others, last = (replace(arg, profile="ones") if isinstance(arg, Input) else arg for arg in call)
    kind = f"{CHOSEN}:rows:{math.prod(last.shape[:-1]) // 2}:8188;-8188"
    told = "parts of a sum are kept in float16, and one of them is beyond it"
    yield FurtherCall((*others, replace(last, profile=kind)), told, purpose=Purpose.VARIED)


def _is_forced(draws: Draws, path: Path, step: int, solver: Solver) -> bool:
    """Whether a comparison goes as it did in all promised calls in which those before it on the path do."""
    scope = CallScope(draws, rank_of(draws, path.form), True, 1 << 31, 1 << 31)
    sizes = {name: var(name, *scope.range(name)) for name in scope.names}
    given = scope.leaves({name: var(name, 0) for name in draws.derive} | sizes)
    views = path.form.views
    shapes = [[n for leaf, n in given.items() if leaf[:2] == ("size", number)] for number in range(len(views))]
    promised = [math.prod(shape, start=term(1)) <= MOST_ELEMENTS for shape in shapes]
    pairs = itertools.combinations(range(len(shapes)), 2)  # one tensor may be two arguments
    same = [zip(shapes[a], shapes[b], strict=False) for a, b in pairs if views[a] == views[b]]
    promised += [equal(term(0) + a, term(0) + b) for both in same for a, b in both]
    terms = polynomials(path.origins.terms, lambda leaf: term(0) + given.get(leaf, variable(leaf)))
    told = ((holds(condition, terms), condition.held) for condition, _ in path.steps[: step + 1])
    *before, goal = [truth if truth is None or held else ~truth for truth, held in told]
    known = [*promised, *(one for one in before if one is not None)]
    return goal is not None and solver.follows(known, goal)


def _unclear(wanted: OtherWay) -> tuple[int, int]:
    """How much a path's call hides, and how many tensors are no float32, whose rounding hides mistakes."""
    return wanted.path.form.hides, sum(view.dtype != "float32" for view in wanted.path.form.views)
