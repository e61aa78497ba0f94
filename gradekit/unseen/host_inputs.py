"""Calls that send host code the ways that a check's examples have not gone."""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gradekit.inputs.draws import Call, Draws
from gradekit.inputs.spec import Input
from gradekit.origins import Condition
from gradekit.size_terms import Leaf, leaves_in
from gradekit.unseen.candidates import constants
from gradekit.unseen.further import FurtherCall, Purpose, fits, made, rank_of
from gradekit.unseen.host_branches import HostBranch, HostBranches, Path, TracedForm
from gradekit.unseen.laid_out import LaidOut, each_layout, layouts_like
from gradekit.unseen.scope import BEYOND, FAR, LARGEST, CallScope, sizes_alone
from gradekit.unseen.search import Search, Solutions
from gradekit.unseen.wants import OtherWay, possible, solved

MOST_SOLVED = 12
"""Comparisons of one check that are solved for."""

MOST_BY_SOLVER = 6
"""Comparisons of one check that z3 is asked about."""

MOST_FAR = 8
"""Solutions as large as FAR for one line, in checks that list their sizes."""

MOST_LAYOUTS, MOST_LAID_OUT, MOST_FAR_LAID_OUT = 40, 60, 8
"""Layouts for which one comparison, and all of a check, are solved for; and for the first of them also as far out as
the entry promises."""

MOST_NAMED = 30
"""Unseen ways that a record names."""

Way = tuple[HostBranch, bool]


@dataclass(frozen=True)
class Chosen:
    """Sizes for which a comparison goes another way; whether all before it go as they did."""

    sizes: Sequence[dict[str, int]] = ()
    same_path: bool = False


@dataclass
class HostInputs:
    """What the checks of a submission have seen of its host code: `branches` are those of the check that
    runs, `narrowly` the ways that some check has gone with sizes that it lists itself, `tried` those that some
    check has made a further call for, `paths` those of the calls that were looked at last."""

    branches: HostBranches
    narrowly: set[Way] = field(default_factory=set)
    tried: set[Way] = field(default_factory=set)
    paths: list[Path] = field(default_factory=list)
    _large: set[tuple[Way, tuple[str, ...]]] = field(default_factory=set)
    search: Search = field(default_factory=Search)
    _far: Counter[int | None] = field(default_factory=Counter)
    _left_to_solver: int = 0
    _left_laid_out: int = 0
    _solved: dict[tuple[Way, CallScope, bool], Chosen] = field(default_factory=dict)

    def begin_check(self) -> None:
        """Another check begins, which has seen nothing yet."""
        self.branches.ways.clear()
        self.branches.beyond.clear()
        self._left_to_solver = MOST_BY_SOLVER
        self._left_laid_out = MOST_LAID_OUT

    def further(self, draws: Draws, forms: Sequence[TracedForm]) -> list[FurtherCall]:
        """Calls for the ways that none of these `forms`, which the check has run, has gone: one for each before another
        for any, since a check has room for few."""
        first = not self.branches.ways
        paths = self.paths = self.branches.look_at([form for form in forms if fits(draws, form)])
        if first:
            self.narrowly |= {(branch, way) for branch, ways in self.branches.ways.items() for way in ways}
        found: dict[HostBranch, list[FurtherCall]] = {}
        wanted_ways = [*itertools.islice(self._wanted(paths), MOST_SOLVED)]
        again = self._again(branch for branch, _ in wanted_ways)
        for turn, (branch, wanted) in enumerate(wanted_ways):
            if not found.get(branch):
                calls = self._calls(draws, wanted, turn)
                found[branch] = _for_again(itertools.islice(calls, 1)) if branch in again else [*calls]
        return [call for turn in itertools.zip_longest(*found.values()) for call in turn if call is not None]

    def _again(self, wanted: Iterable[HostBranch]) -> set[HostBranch]:
        """Those that another of the same place stands before, or has gone both ways."""
        known = {branch.place for branch, ways in self.branches.ways.items() if len(ways) > 1}
        again = set()
        for branch in dict.fromkeys(wanted):
            if branch.context and branch.place in known:
                again.add(branch)
            known.add(branch.place)
        return again

    def as_data(self) -> dict[str, Any]:
        """The branches of the check, as the report record holds them."""
        ways = self.branches.ways
        unseen = [
            {"line": branch.line, "what": f"{branch.text} is never {'true' if way else 'false'}"}
            for branch, way in self.unseen()
        ]
        return {"of": 2 * len(ways), "seen": sum(map(len, ways.values())), "unseen": unseen[:MOST_NAMED]}

    def unseen(self) -> list[tuple[HostBranch, bool]]:
        """The ways that no example of the check has gone, in the order of lines."""
        missing = [(branch, not way) for branch, ways in self.branches.ways.items() if len(ways) == 1 for way in ways]
        return sorted(missing, key=lambda one: (one[0].line or 0, one[0].text, one[1]))

    def _wanted(self, paths: Sequence[Path]) -> Iterator[tuple[HostBranch, OtherWay]]:
        """The branches that went one way alone, or only up to their limit, each with the paths on which it was met;
        each once before any twice."""
        met: dict[HostBranch, list[OtherWay]] = {}
        for path in paths:
            for step, (condition, branch) in enumerate(path.steps):
                if self.branches.unseen(branch, condition):
                    met.setdefault(branch, []).append(OtherWay(path, step))
        first = _elsewhere_last(sorted(met, key=lambda branch: self._late(branch, met[branch][0])))
        for turn in itertools.zip_longest(*(sorted(met[branch], key=_imprecise) for branch in first)):
            yield from ((branch, wanted) for branch, wanted in zip(first, turn, strict=True) if wanted is not None)

    def _late(self, branch: HostBranch, wanted: OtherWay) -> tuple[bool, bool, int]:
        """What sorts branches: those that no check has made a call for come first; last those that ask whether two
        sizes are equal, of which torch's own functions ask many."""
        condition, terms = wanted.path.steps[wanted.step][0], wanted.path.origins.terms
        numbers = [terms[n][0] == "number" for n in (condition.left, condition.right)]
        equal = condition.relation == "==" and not any(numbers)
        return (branch, not condition.held) in self.tried, equal, _imprecise(wanted)

    def _calls(self, draws: Draws, wanted: OtherWay, turn: int) -> Iterator[FurtherCall]:
        condition, branch = wanted.path.steps[wanted.step]
        way = branch, not condition.held
        strided = [*self._strided(draws, wanted, way, turn)]
        if strided:
            yield from strided
            return
        narrow = chosen = self._chosen(draws, wanted, way, wide=False)
        if not narrow.same_path and way not in self.narrowly:
            wide = self._chosen(draws, wanted, way, wide=True, near=bool(narrow.sizes))
            chosen = wide if wide.same_path or not narrow.sizes else narrow
        form = wanted.path.form
        key = way, tuple(view.dtype for view in form.views)
        for place, one in enumerate(chosen.sizes[:1] if key in self._large else chosen.sizes):
            for more in layouts_like(draws, form, _placed(draws, wanted.path, wanted.path.steps, "offset")):
                tried = functools.partial(self._note, key, chosen is narrow, place > 0)
                call = made(draws, form, one, turn, more)
                yield FurtherCall(call, f"{branch.text} is {'true' if way[1] else 'false'}", branch.line, tried=tried)

    def _note(self, key: tuple[Way, tuple[str, ...]], narrow: bool, large: bool) -> None:
        """A check tries a call that goes a way, with the smallest sizes or with larger ones."""
        way, _ = key
        self.tried.add(way)
        if narrow:
            self.narrowly.add(way)
        if large:
            self._large.add(key)

    def _strided(self, draws: Draws, wanted: OtherWay, way: Way, turn: int) -> Iterator[FurtherCall]:
        """For a comparison that strides or offsets decide, with the first layout that serves for it: best one for which
        all before it goes as it did."""
        path, calls = wanted.path, list[Call]()
        if not _leaves(path, path.steps[: wanted.step + 1], "stride", "offset"):
            return
        asked = [path.steps[wanted.step]]
        first, shifted = _placed(draws, path, asked, "stride"), _placed(draws, path, asked, "offset")
        layouts = each_layout(draws, path.form, _numbers(wanted), first, shifted)
        for number, laid_out in enumerate(itertools.islice(layouts, MOST_LAYOUTS)):
            if not self._left_laid_out:
                break
            self._left_laid_out -= 1
            found = self._laid_out(draws, wanted, laid_out, number < MOST_FAR_LAID_OUT)
            if found.sizes and (found.same_path or not calls):
                more = {label: pick for one in laid_out for label, pick in one.picks.items()}
                # what is larger is likelier to meet what else is asked beside
                calls = [made(draws, path.form, one, turn, more) for one in reversed(found.sizes)]
            if found.same_path:
                break
        told = f"{way[0].text} is {'true' if way[1] else 'false'}"
        tried = functools.partial(self.tried.add, way)
        yield from (FurtherCall(call, told, way[0].line, tried=tried) for call in calls if _is_small(call))

    def _laid_out(self, draws: Draws, wanted: OtherWay, laid_out: tuple[LaidOut, ...], far: bool) -> Chosen:
        """Sizes for tensors that are laid out so, `far` out where there are no others."""
        scope = CallScope(sizes_alone(draws), rank_of(draws, wanted.path.form), True, BEYOND, laid_out)
        for beyond, same_path in itertools.product((BEYOND, FAR) if far else (BEYOND,), (True, False)):
            found = self._looked_for(wanted, same_path, replace(scope, beyond=beyond)).sizes
            if found:
                return Chosen(found, same_path)
        return Chosen()

    def _looked_for(self, wanted: OtherWay, same_path: bool, scope: CallScope) -> Solutions:
        return self.search.solutions(replace(wanted, same_path=same_path), wanted.path, scope)

    def _chosen(self, draws: Draws, wanted: OtherWay, way: Way, wide: bool, near: bool = False) -> Chosen:
        """Sizes that the check lists, or where it is `wide` any; those that are `near` make no large tensors."""
        scope = CallScope(sizes_alone(draws), rank_of(draws, wanted.path.form), wide)
        key = way, scope, near
        farthest = FAR if draws.free or wide and self._far[way[0].line] < MOST_FAR else BEYOND
        farthest = BEYOND if near else farthest
        if key not in self._solved and not possible(wanted, replace(scope, beyond=farthest)):
            self._solved[key] = Chosen()
        if key not in self._solved:
            chosen, scope = Chosen(), replace(scope, beyond=farthest)
            for same_path in (True, False):
                found = self._looked_for(wanted, same_path, scope)
                chosen = Chosen(found.sizes, same_path) if found.sizes else chosen
                if found.sizes and found.beyond:
                    self._far[way[0].line] += wide and _is_far(scope, found.sizes[0])
                    break
            if not chosen.sizes and self._left_to_solver:
                self._left_to_solver -= 1
                further = (solved(wanted, replace(scope, beyond=beyond)) for beyond in (1, BEYOND, farthest))
                by_solver = next(filter(None, further), [])
                chosen = Chosen(by_solver, same_path=bool(by_solver))
            self._solved[key] = chosen
        return self._solved[key]


def _is_far(scope: CallScope, sizes: Mapping[str, int]) -> bool:
    """Whether a call has more elements than any that is made where there are smaller ones."""
    return scope.count(sizes) > replace(scope, beyond=BEYOND).at_most


def _for_again(calls: Iterable[FurtherCall]) -> list[FurtherCall]:
    return [replace(call, purpose=Purpose.AGAIN) for call in calls]


def _elsewhere_last(branches: Iterable[HostBranch]) -> list[HostBranch]:
    """The branches in their order, but of those that are one comparison with several dtypes and layouts all but the
    first at the end, other dtypes before other layouts: what stands behind a comparison tells more than the same one
    again."""
    met, late = set[Any](), list[tuple[int, HostBranch]]()
    for branch in branches:
        late.append(((branch.place in met) + ((branch.place, branch.dtypes) in met), branch))
        met |= {branch.place, (branch.place, branch.dtypes)}
    return [branch for _, branch in sorted(late, key=lambda one: one[0])]


def _imprecise(wanted: OtherWay) -> int:
    """How many of a path's tensors are no float32: where results are rounded to less, mistakes may be hidden."""
    return sum(view.dtype != "float32" for view in wanted.path.form.views)


def _leaves(path: Path, steps: Iterable[tuple[Condition, HostBranch]], *kinds: str) -> set[Leaf]:
    """The numbers of these kinds, "stride" or "offset", that decide some steps of a path."""
    numbers = [number for condition, _ in steps for number in (condition.left, condition.right)]
    return {leaf for leaf in leaves_in(path.origins.terms, *numbers) if leaf[0] in kinds}


def _placed(draws: Draws, path: Path, steps: Iterable[tuple[Condition, HostBranch]], kind: str) -> set[str]:
    """The names of tensors of which these steps ask for a "stride", or where they begin ("offset")."""
    numbers = {leaf[1] for leaf in _leaves(path, steps, kind)}
    return {tensor.name for number, tensor in enumerate(draws.tensors) if number in numbers}


def _numbers(wanted: OtherWay) -> list[int]:
    """What is compared on the path, the comparison itself first."""
    terms, steps = wanted.path.origins.terms, wanted.path.steps[: wanted.step + 1]
    compared = [terms[n] for condition, _ in reversed(steps) for n in (condition.right, condition.left)]
    return constants([*compared, *terms])


def _is_small(call: Call) -> bool:
    return all(arg.storage_size <= LARGEST for arg in call if isinstance(arg, Input))
