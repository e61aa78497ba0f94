"""Calls with one long dimension, all others being short or of usual size: for what is right up to some size without
comparing anything, such as a grid of a fixed number of programs. Pure, nothing is run here.

Each call is several times as long as the one before, up to the promised end, or to where the work takes too much by the
law of growth that the calls before have shown; at the end itself some programs of a large grid are run then.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from gradekit.domain import ANY_DIMENSIONS, MOST_ELEMENTS
from gradekit.engine.def_use import ATOMICS, LOADS, STORES
from gradekit.engine.kernel_facts import operations
from gradekit.engine.launch import bind
from gradekit.engine.memory import Memory, Storage
from gradekit.engine.ttir import Op
from gradekit.engine.ttir_locations import line_of
from gradekit.engine.values import Pointer, TensorDescriptor
from gradekit.inputs import layouts
from gradekit.inputs.draws import Call, Draws, shape_of
from gradekit.inputs.layouts import CONTIGUOUS, TRANSPOSED, is_row_major
from gradekit.program import Choice, Fill, Launch, Program, View, every_step, reads, run_steps, views_in, writes
from gradekit.unseen import Limit
from gradekit.unseen.further import FurtherCall, fits, made, rank_of
from gradekit.unseen.host_branches import Path, TracedForm
from gradekit.unseen.kernel_branches import KernelText, Place, kernel_text, turns
from gradekit.unseen.scope import CallScope, choices_of, layouts_like

INT32_MAX = torch.iinfo(torch.int32).max

Checks = Sequence[tuple[str, Draws]]
"""All checks of an assignment in their order, by name, with what each draws its calls from."""


def first_of(checks: Checks, keys: Callable[[str, Draws], Iterable[Hashable]]) -> dict[Hashable, str]:
    """For each of the `keys` that checks have, the first check that has it: it alone makes the calls that belong to it.
    So these follow from an assignment's tests, whatever process runs them, and whichever of them are chosen."""
    found: dict[Hashable, str] = {}
    for check, draws in checks:
        for key in keys(check, draws):
            found.setdefault(key, check)
    return found


@dataclass(frozen=True)
class LongDimensions:
    """Which dimensions each of the `checks` stretches. The first check of an entry, a name and its backward pass does;
    again for each other choice and each kind of tensors that say where others are read; for each kind of values that
    kernels sum in few bits; and a little for each test of gradients, which may be about another gradient."""

    checks: Checks

    @functools.cached_property
    def _first(self) -> dict[Hashable, str]:
        return first_of(self.checks, _keys)

    def begun(self, check: str, draws: Draws, forms: Sequence[TracedForm], few_bits: bool = False) -> Iterator[Stretch]:
        """A check's calls, of kernels that may count in `few_bits`; each must run before the next is asked for."""
        mine = [one for one in forms if fits(draws, one) and one.elements]
        if not mine:
            return
        views = [one for one in mine if not all(is_row_major(view.shape, view.stride) for view in one.views)]
        narrow = {one.key for one in mine if few_bits and any("float16" in view.dtype for view in one.views)}
        among = views if few_bits and views else mine
        form = min(among, key=lambda one: (abs(rank_of(draws, one) - _rank(draws)), one.key not in narrow))
        scope = CallScope(draws, rank_of(draws, form), True, Limit.FAR)
        for name in scope.sizes:
            if few_bits and self._is_first(check, draws, name, (draws.values, draws.layouts, _about(check, draws))):
                other = Limit.OTHERS[0] if _outer(draws, name) else 1  # one counter has all that are summed
                far = replace(scope, beyond=4 * Limit.FAR, most=Limit.COUNTED)
                for chosen in filter(None, choices_of(draws)):
                    yield Stretch(draws, form, far, name, other, Limit.LENGTHS[-1:], far.most, dict(chosen))
                for turn in (0, -1):
                    yield Stretch(draws, form, far, name, other, (), far.most, layouts_like(draws, form, turn))
            yield from self._usual(check, draws, form, scope, name)

    def quotients(self, check: str, draws: Draws, forms: Sequence[TracedForm]) -> Iterator[Call]:
        """Calls with one dimension so long beside one of 2 that a quotient by 2 is off by more in float32; all
        tensors repeat their rows, so that they are small."""
        mine = [one for one in forms if fits(draws, one) and one.elements and not one.wanted]
        repeated = {f"layout {one}": "expanded" for one, ways in draws.layouts if "expanded" in ways}
        if not mine or len(repeated) < len(draws.layouts):
            return
        narrow = {one.key for one in mine if any("float16" in view.dtype for view in one.views)}
        form = min(mine, key=lambda one: (abs(rank_of(draws, one) - _rank(draws)), one.key not in narrow))
        scope = CallScope(draws, rank_of(draws, form), True, 1 << 31, Limit.QUOTIENTS)
        for name in scope.sizes:
            length = Limit.QUOTIENTS >> len(scope.sizes) - 1
            if _outer(draws, name) > 1 and self._is_first(check, draws, name, (draws.values, draws.layouts, "")):
                sizes = {one: scope.nearest(one, length if one == name else 2) for one in scope.names}
                yield made(draws, form, sizes, 0, repeated)

    def _usual(self, check: str, draws: Draws, form: TracedForm, scope: CallScope, name: str) -> Iterator[Stretch]:
        """Those of one dimension; with other choices and values only as long as shows most."""
        is_first, longest = self._is_first(check, draws, name), 0
        others = Limit.OTHERS if 1 < len(scope.sizes) <= Limit.MANY_DIMENSIONS else Limit.OTHERS[:1]
        for other in others if is_first else ():
            yield (usual := Stretch(draws, form, scope, name, other))
            longest = max(longest, usual.reached)
        for number, more in enumerate(filter(None, choices_of(draws))):
            if self._is_first(check, draws, name, more) and (number > 0 or not is_first):
                lengths = [min(longest, Limit.LENGTHS[2])] if longest else Limit.LENGTHS[:3]
                yield Stretch(draws, form, scope, name, Limit.OTHERS[0], lengths, more=dict(more))
        if not is_first and self._is_first(check, draws, name, _told_apart(check, draws)):
            yield Stretch(draws, form, scope, name, Limit.OTHERS[0], Limit.LENGTHS[1:2])

    def _is_first(self, check: str, draws: Draws, name: str, what: Hashable = None) -> bool:
        return self._first.get((draws.entry.name, draws.upstream, name, what)) == check


def _keys(check: str, draws: Draws) -> Iterator[Hashable]:
    """What a check stretches where no check before it does."""
    for name in CallScope(draws, _rank(draws)).sizes:
        kinds = draws.values, draws.layouts, _about(check, draws)
        for what in (None, kinds, _told_apart(check, draws), *filter(None, choices_of(draws))):
            yield draws.entry.name, draws.upstream, name, what


def _rank(draws: Draws) -> int:
    """How many dimensions have no name in calls that are stretched: one, if that may be."""
    return min(draws.ranks, key=lambda rank: abs(rank - 1), default=0)


def _told_apart(check: str, draws: Draws) -> Hashable:
    """What else tells calls apart: the kinds of values of tensors that say where others are read, or how far; for
    gradients the test, whatever its parameters."""
    known = {tensor.name for tensor in draws.tensors if tensor.range is not None}
    indices = tuple((names, options) for names, options in draws.values if known.intersection(names.split()))
    return "apart", indices, _about(check, draws)


def _about(check: str, draws: Draws) -> str:
    """Of gradients, each test is about another."""
    return check.partition("[")[0] if draws.upstream else ""


def _outer(draws: Draws, name: str) -> int:
    """How far out a dimension lies in the results: what is added up lies in none, or is the last of the inputs."""
    own = ANY_DIMENSIONS if name.startswith(ANY_DIMENSIONS) else name
    parts = [(place, part) for one in draws.entry.results for place, part in enumerate(reversed(one.shape), start=1)]
    return max((place for place, part in parts if own in part.split()), default=0)


@dataclass
class Stretch:
    """One dimension, beside others of size `other` where they may have it, with what is chosen beside sizes in `more`;
    to certain `lengths` or to the promised end, with at `most` so many elements of the largest tensor. `spent` is told
    the work of each call, None where it took too much."""

    draws: Draws
    form: TracedForm
    scope: CallScope
    name: str
    other: int
    lengths: Sequence[int] = ()
    most: int = Limit.LONG_ELEMENTS
    more: Mapping[str, Any] = field(default_factory=dict)
    _seen: list[tuple[int, int]] = field(default_factory=list)
    _is_too_much: bool = False
    _is_over: bool = False

    def next(self) -> FurtherCall | None:
        """The next call; None where it would be too large, or is beyond what is promised. Where work allows no more,
        the last is of some programs at the end."""
        end, other = (self.lengths[-1], self.other) if self.lengths else self._end
        length = min(next((n for n in (*self.lengths, *Limit.LENGTHS) if n > self.reached), end), end)
        if self._is_over or length <= self.reached:
            return None
        within = self._within_work()
        if self._is_too_much or (length > 2 * within and within < 2 * self.reached):
            # programs that share a sum meet in atomics, or a launch after them: none would be run alone
            if self.lengths or self.other != Limit.OTHERS[0] or not (self.form.wanted or _outer(self.draws, self.name)):
                return None
            length, self._is_over = end, True
        elif length > 2 * within:
            length = int(within)
        sizes = self._sizes(length, other if length == end else self.other)
        if not self._longest_allowed([length], sizes):
            return None
        self._seen.append((length, 0))
        told = f"{self.name} is {length:,}, the others {other if length == end else self.other}"
        call = made(self.draws, self.form, sizes, 0, self.more)
        return FurtherCall(call, told, most_work=2 * self._most_work, in_part=self._is_over)

    @property
    def reached(self) -> int:
        """The longest that a call was made with."""
        return self._seen[-1][0] if self._seen else 0

    @functools.cached_property
    def _end(self) -> tuple[int, int]:
        """The longest that may be, and the size of the others: 1 where only so the dimension is as long as is
        promised."""
        top = self.scope.range(self.name)[1]
        lengths = [*(top >> n for n in range(top.bit_length())), *(n for n in Limit.LENGTHS if n <= top)]
        longest = {other: self._longest_allowed(lengths, self._sizes(0, other)) for other in (self.other, 1)}
        other = 1 if longest[1] == top else self.other
        return longest[other], other

    def _longest_allowed(self, lengths: Sequence[int], sizes: Mapping[str, int]) -> int:
        """The longest of these that a call may have beside other sizes; 0 where there is none."""
        columns = {name: torch.full([len(lengths)], n) for name, n in sizes.items()}
        columns[self.name] = torch.tensor(lengths)
        most = min(self.most, Limit.GRADIENT_ELEMENTS) if self.form.wanted else self.most
        fits = self.scope.allows(columns) & (self.scope.elements(columns) <= most)
        return int((columns[self.name] * fits).max())

    def _sizes(self, length: int, other: int) -> dict[str, int]:
        short = {name: self.scope.nearest(name, 1 if name == self._single else other) for name in self.scope.names}
        return short | {self.name: length}

    @functools.cached_property
    def _most_work(self) -> int:
        few = self.most == Limit.COUNTED
        is_summed = not _outer(self.draws, self.name) or few and self.draws.upstream  # of a gradient, any may be
        return Limit.SUMMED_WORK * (Limit.FEW_BITS if few else 1) if is_summed else Limit.WORK

    @functools.cached_property
    def _single(self) -> str:
        """Of many other dimensions, the outermost is 1: the rest are enough."""
        others = [name for name in self.scope.sizes if name != self.name]
        return max(others, key=functools.partial(_outer, self.draws)) if len(others) >= Limit.MANY_DIMENSIONS else ""

    def spent(self, work: int | None) -> None:
        """The work of the last call; None where it took too much."""
        (length, _), self._is_too_much = self._seen.pop(), work is None
        self._seen += [(length, max(work, 1))] if work is not None else []

    def _within_work(self) -> float:
        """How long a call may be, where its work goes on to grow as from the last but one call to the last: as a power
        of its length, or as a line beside what any call takes, such as the programs of a grid of a fixed size."""
        if len(self._seen) < 2:
            return math.inf
        (before, less), (last, work) = self._seen[-2:]
        power = math.log(work / less) / math.log(last / before)
        if power < 1:
            return last + (self._most_work - work) * (last - before) / max(work - less, 1)
        return float(last * (self._most_work / work) ** (1 / power))


# --- calls as long as an entry promises, which nobody could run: what their programs leave out is counted -------------
#
# Only the call is traced, without any tensor's memory. A tensor is left out only if it is touched as a whole in a
# shorter call, by many tiles: a kernel that never touches all of it may be right.

AskProgram = Callable[[TracedForm], "Program | None"]
"""Traces a call; None where it fails."""


@dataclass(frozen=True)
class LongCall:
    """A call of these `sizes`: one dimension, `name`, is as long as may be, and in shorter ones `beside` these. Tensors
    that may be transposed are so where it is `turned`."""

    draws: Draws
    form: TracedForm
    name: str
    beside: Mapping[str, int]
    sizes: Mapping[str, int]
    turned: bool = False

    def shortage(self, ask: AskProgram) -> LeftOut | None:
        """What its programs leave out; None where that is nothing, or cannot be told."""
        program = ask(self.form)
        for one in left_out(program) if program is not None else ():
            shorter = (ask(self._of(length)) for length in Limit.SHORTER if length < self.sizes[self.name])
            if any(one.is_reached(each) for each in shorter if each is not None):
                return one
        return None

    def outgrown(self, ask: AskProgram) -> int | None:
        """The line of a loop whose counter it lets outgrow int32."""
        program = ask(self.form)
        for step in every_step(program.steps) if program is not None else ():
            line = _outgrown(program, step) if isinstance(step, Launch) and program is not None else None
            if line is not None:
                return line
        return None

    @property
    def upright(self) -> LongCall:
        """The same with contiguous tensors."""
        return replace(self, form=stretched(self.draws, self.form, self.sizes, False), turned=False)

    def growing(self) -> Iterator[TracedForm]:
        """The call with shorter lengths, each longer than the one before."""
        return map(self._of, reversed((*Limit.SHORTER, *Limit.SHORT)))

    def _of(self, length: int) -> TracedForm:
        most = min(length, self.sizes[self.name])
        sizes = {**dict.fromkeys(self.draws.derive, most), **self.beside, self.name: most}
        return stretched(self.draws, self.form, sizes, self.turned)

    @property
    def told(self) -> str:
        """Its sizes, in words."""
        told = ", ".join(f"{name} = {size:,}" for name, size in self.sizes.items())
        return f"{told}, all transposed" if self.turned else told

    def description(self, one: LeftOut) -> str:
        """As a sentence."""
        names = [argument.name for argument in self.draws.tensors]
        what = "the result" if one.stored else names[one.place] if one.place < len(names) else "an argument"
        what = "what one kernel stores for the next" if one.is_between else what
        touched, operations = ("stored", "stores") if one.stored else ("loaded", "loads")
        programs = f"all {one.tally.programs:,} programs" if one.tally.programs > 1 else "its one program"
        return (
            f"With {self.told}, {what} has {one.count:,} elements, and at most {one.tally.lanes or 0:,} of them can be "
            f"{touched}: so many lanes have the {operations} of {programs} together."
        )


@dataclass(frozen=True)
class PromisedSizes:
    """Which of the `checks` looks at which calls: the first of an entry with such dtypes, and of its backward pass; the
    first with transposed tensors, at calls with these; the first with so many dimensions, at each path of host code."""

    checks: Checks

    @functools.cached_property
    def _first(self) -> dict[Hashable, str]:
        return first_of(self.checks, lambda check, draws: [*_of_ranks(draws).values(), *_laid_out(draws)])

    def calls(self, check: str, draws: Draws, forms: Sequence[TracedForm], paths: Sequence[Path]) -> Iterator[LongCall]:
        """One for each dimension of a check's calls, if it is the first; then one on each of these `paths`."""
        form = next((one for one in forms if _is_apart(draws, one)), None)
        if form is None:
            return
        shapes: set[Hashable] = set()
        ways = [turned for key, turned in _laid_out(draws).items() if self._first[key] == check]
        sizes_of = CallScope(draws, rank_of(draws, form), True).sizes if ways else ()
        usual = (_usual(draws, form, *one) for one in itertools.product(ways, sizes_of, Limit.BESIDE))
        mine = (one for one in paths if _is_apart(draws, one.form) and self.tells_of_launches(check, draws, one.form))
        for call in itertools.chain(usual, itertools.islice(_on_paths(draws, mine), Limit.LONGEST)):
            key = call.turned, *(view.shape for view in call.form.views)
            if key not in shapes and call.sizes[call.name] >= Limit.SHORTEST:
                yield call
            shapes.add(key)

    def tells_of_launches(self, check: str, draws: Draws, form: TracedForm) -> bool:
        """Whether a check fails where nothing is launched: one for an entry and so many dimensions does, and one for
        its backward pass."""
        return self._first.get(_of_ranks(draws).get(rank_of(draws, form))) == check


def _is_apart(draws: Draws, form: TracedForm) -> bool:
    return fits(draws, form) and form.elements > 0 and all(v.storage == place for place, v in enumerate(form.views))


def _usual(draws: Draws, form: TracedForm, turned: bool, name: str, other: int | None) -> LongCall:
    beside = _sizes(draws, form, name, 1, other or Limit.BESIDE[0])
    sizes = _sizes(draws, form, name, None, other)
    return LongCall(draws, stretched(draws, form, sizes, turned), name, beside, sizes, turned)


def _on_paths(draws: Draws, paths: Iterable[Path]) -> Iterator[LongCall]:
    """Calls that take a path as one of contiguous tensors has, each with another of its dimensions as long as may be:
    those with the fewest elements first."""
    each = {path.way: path for path in sorted(paths, key=lambda one: -one.form.elements) if all(path.form.is_plain)}
    for path in reversed(each.values()):
        scope = CallScope(draws, rank_of(draws, path.form), True)
        known = scope.sizes_of(path.form)
        own = {name: known[name] for name in scope.sizes if name in known and not draws.derive}
        for name in own if len(own) == len(scope.sizes) else ():
            sizes = own | {name: _greatest(draws, path.form, own, name)}
            call = LongCall(draws, stretched(draws, path.form, sizes, False), name, own, sizes)
            if all(went is not False for went in path.held(path.values(call.form.leaves))):
                yield call


def _entry(draws: Draws) -> tuple[str, bool]:
    return draws.entry.name, draws.upstream


def _of_ranks(draws: Draws) -> dict[int, Hashable]:
    return {rank: (*_entry(draws), "rank", rank) for rank in draws.ranks or (0,)}


def _laid_out(draws: Draws) -> dict[Hashable, bool]:
    """What a check with such calls looks at first, and whether it is with transposed tensors."""
    is_turned = any(TRANSPOSED in ways for _, ways in draws.layouts)
    own = (*_entry(draws), draws.dtypes, draws.ranks)
    return {own: False, **({(*_entry(draws), TRANSPOSED): True} if is_turned else {})}


def stretched(draws: Draws, form: TracedForm, sizes: Mapping[str, int], turned: bool) -> TracedForm:
    """The call with these sizes, its tensors row by row in memory, or `turned`."""
    views = []
    for tensor, view in zip(draws.tensors, form.views, strict=False):
        shape = shape_of(tensor, sizes, rank_of(draws, form))
        may_turn = turned and len(shape) > 1 and TRANSPOSED in dict(draws.layouts)[tensor.name]
        layout = TRANSPOSED if may_turn else CONTIGUOUS
        views.append(replace(view, shape=shape, stride=layouts.place(layout, shape)[0], offset=0))
    left = iter(views)
    args = tuple(next(left) if isinstance(arg, View) else arg for arg in form.args)
    return replace(form, key="", args=args, upstream=next(left, None))


def _sizes(draws: Draws, form: TracedForm, name: str, length: int | None, other: int | None) -> dict[str, int]:
    """Sizes with one of this length, or the greatest promised, all others short, or as great as may be: first those of
    which the least is promised, so that most are at their end."""
    scope = CallScope(draws, rank_of(draws, form), True)
    sizes = {one: scope.nearest(one, other or Limit.BESIDE[0] or 1) for one in scope.sizes}
    sizes[name] = length or _greatest(draws, form, sizes, name)
    for one in sorted(scope.sizes, key=lambda one: scope.range(one)[1]) if other is None else ():
        if one != name and not scope.listed(one):
            sizes[one] = _greatest(draws, form, sizes, one)
    return {one: sizes[name] for one in draws.derive} | sizes


def _greatest(draws: Draws, form: TracedForm, sizes: Mapping[str, int], name: str) -> int:
    """The greatest that one size may be beside others, with no tensor of more than MOST_ELEMENTS."""
    size = draws.entry.sizes[ANY_DIMENSIONS if name.startswith(ANY_DIMENSIONS) else name]
    more = range(sizes[name] + 1, 1 + (0 if size.only else size.most))

    def is_beyond(n: int) -> bool:
        return not _promised(draws, form, {**{one: n for one in draws.derive}, **sizes, name: n})

    return sizes[name] + bisect.bisect_left(more, True, key=is_beyond)


def _promised(draws: Draws, form: TracedForm, sizes: Mapping[str, int]) -> bool:
    named = {one: n for one, n in sizes.items() if not one.startswith(ANY_DIMENSIONS)}
    shapes = (shape_of(tensor, sizes, rank_of(draws, form)) for tensor in draws.tensors[: len(form.views)])
    return draws.entry.within(named) and max(map(math.prod, shapes)) <= MOST_ELEMENTS


# --- elements that no program of a call can touch, told by counting ---------------------------------------------------
#
# The lanes of all loads or stores of a tensor, in all programs of its launches, are at least as many as the elements
# that they touch, whatever their addresses, masks and values are. Where a tensor has more elements, some are left
# out. So a grid that is cut off is found at sizes that nobody could run.


@dataclass(frozen=True)
class CountedAccess:
    """A load or store of a kernel: the names of the arguments that it may point into, None where that is not known; the
    lanes of one tile; and the numbers of the loops around it, None where its address depends on what was loaded."""

    op: Op
    roots: frozenset[str] | None
    lanes: int
    loops: tuple[int, ...] | None


@dataclass(frozen=True)
class Tally:
    """At most so many `lanes` of so many tiles; None where no bound is known. `line` is that of the last launch; one
    store touches `least` elements or more."""

    lanes: int | None = 0
    tiles: int = 0
    least: int = 0
    programs: int = 0
    line: int | None = None


Tallies = dict[tuple[int, bool], Tally]
"""By storage, and whether it is stored to."""


@dataclass(frozen=True)
class LeftOut:
    """A tensor of a call whose elements cannot all be stored (or loaded): the result or argument number `place`, or
    the storage of this number that `is_between` launches."""

    place: int
    stored: bool
    count: int
    tally: Tally
    is_between: bool = False

    def is_reached(self, shorter: Program, tiles: int = Limit.MANY_TILES) -> bool:
        """Whether a shorter call touches all of it, by so many tiles or of so many programs."""
        runs = [*_runs(shorter)]
        if self.is_between:
            each = ([run.get((self.place, stored), Tally()) for stored in (False, True)] for run in runs)
            return all(tiles <= stores.least <= (loads.lanes or 0) for loads, stores in each)
        view: Any = (shorter.results if self.stored else shorter.inputs)[self.place]
        tallies = [run.get((view.storage, self.stored), Tally()) for run in runs]
        return all(t.tiles >= tiles and (t.lanes is None or t.lanes >= view.numel) for t in tallies)


def left_out(program: Program) -> list[LeftOut]:
    """The results of a call that cannot all be stored, arguments, and what launches store for others, that cannot all
    be loaded."""
    found: dict[tuple[int, bool, bool], LeftOut] = {}
    for tallies in _runs(program):
        for one in _short(program, tallies):
            found.setdefault((one.place, one.stored, one.is_between), one)
    return list(found.values())


def _short(program: Program, tallies: Tallies) -> Iterator[LeftOut]:
    for stored, views in ((True, program.results), (False, program.inputs)):
        for place, view in enumerate(views):
            if isinstance(view, View) and view.numel and (not stored or view.storage not in program.storages):
                tally = tallies.get((view.storage, stored), Tally())
                if tally.lanes is not None and tally.lanes < view.numel:
                    yield LeftOut(place, stored, view.numel, tally)
    for (storage, stored), tally in tallies.items():
        if stored and (loads := tallies.get((storage, False))) and loads.lanes and loads.lanes < tally.least:
            yield LeftOut(storage, False, tally.least, loads, is_between=True)


def _runs(program: Program) -> Iterator[Tallies]:
    """What each run of the call touches: one for each option of its choices."""
    most = max((len(step.options) for step in every_step(program.steps) if isinstance(step, Choice)), default=1)
    for option in range(max(most, 1)):
        found: Tallies = {}
        for step in run_steps(program.steps, option):
            _count(program, step, found)
        yield found


def _count(program: Program, step: Any, found: Tallies) -> None:
    if isinstance(step, Launch):
        _count_launch(program, step, found)
    elif not isinstance(step, Fill):
        found |= {(view.storage, stored): Tally(lanes=None)
                  for stored, views in ((False, reads(step)), (True, writes(step))) for view in views}  # fmt: skip


def _count_launch(program: Program, launch: Launch, found: Tallies) -> None:
    text, bound, numbers = _bound(program, launch)
    pointers = {name: value.base if isinstance(value, TensorDescriptor) else value for name, value in bound.items()}
    storages = {name: one.storage.id for name, one in pointers.items() if isinstance(one, Pointer)}
    between = program.allocated.keys() - {view.storage for view in views_in(program.results)}
    for access in accesses(text):
        times = None if access.loops is None else _times(text, launch.grid, numbers, *access.loops)
        roots = storages if access.roots is None else access.roots
        touched = {storages[name] for name in roots if name in storages}
        stored = (False, True) if access.op.name in ATOMICS else (access.op.name in STORES,)
        for key in itertools.product(touched, stored):
            found[key] = _more(found.get(key, Tally()), times, access.lanes, launch)
            if key[1] and key[0] in between:
                least = max(found[key].least, _least(text, access.op, launch.grid, numbers))
                found[key] = replace(found[key], least=least)


def _bound(program: Program, launch: Launch) -> tuple[KernelText, dict[str, Any], frozenset[tuple[str, int]]]:
    """A launch's kernel, its arguments by their names in the TTIR, and its whole numbers by those in the source."""
    kernel = program.kernels[launch.kernel]
    text = kernel_text(kernel.name, kernel.unaligned, program.path)
    entry, numbered = text.module.entry, Memory()
    numbered.storages.update((view.storage, Storage(view.storage, torch.empty(0), 0)) for view in views_in(launch))
    bound = dict(zip(entry.arguments, bind(entry, launch.args, numbered), strict=False))
    return text, bound, frozenset((text.arguments[name], n) for name, n in bound.items() if type(n) is int)


def _outgrown(program: Program, launch: Launch) -> int | None:
    """The line of a loop whose counter, added up once more after the last turn of some program, is beyond int32: it
    wraps around to below where the loop stops, which goes on. Of more than PROGRAMS, and of loops that no program goes
    through twice, nothing is told."""
    text, _, numbers = _bound(program, launch)
    for op in (op for op in text.ops if op.name == "scf.for" and op.operand_types[0].element == "i32"):
        anywhere = Place(launch.grid, dict(numbers), (None, None, None), True, True).operands(text, op.number, 1, 3)
        if anywhere and None not in anywhere and (sum(anywhere) <= INT32_MAX or anywhere[1] >= anywhere[0]):
            continue  # in no program
        for place in _places(launch.grid, numbers, is_last=True):
            start, stop, step, *_, is_met = place.operands(text, op.number, 0) or [None] * 4
            count = None if op.attributes.get("unsigned") else turns(start, stop, step)
            if count is None or is_met is None:
                break
            is_beyond = start + count * step > INT32_MAX
            if bool(torch.as_tensor(is_beyond & is_met).any()) and bool(torch.as_tensor(count > 1).any()):
                return line_of(op.location, text.path)
    return None


def _more(before: Tally, times: int | None, lanes: int, launch: Launch) -> Tally:
    line = launch.source.line if launch.source else None
    if times is None or before.lanes is None:
        return replace(before, lanes=None, line=line)
    programs = max(before.programs, math.prod(launch.grid))
    return replace(before, lanes=before.lanes + times * lanes, tiles=before.tiles + times, programs=programs, line=line)


# --- kernels ---------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=1 << 12)
def _times(text: KernelText, grid: tuple[int, int, int], names: frozenset[tuple[str, int]], *loops: int) -> int | None:
    """How often all programs of a launch together go through the innermost of these loops; None where that is not
    known: what differs from lane to lane, or from turn to turn of a loop, has no value."""
    total = 0
    for place in _places(grid, names):
        columns = [one.numel() for one in place.program if isinstance(one, torch.Tensor)]
        times = _times_of(text, place, math.prod(columns or grid), loops)
        if times is None:
            return None
        total += times
    return total


def _places(
    grid: tuple[int, int, int], names: frozenset[tuple[str, int]], is_last: bool | None = None
) -> Iterator[Place]:
    """All programs of a launch, so many at once: what `is_last` of tiles and loops, or differs nowhere in them."""
    along = [_along(grid, axis) for axis in range(len(grid))]
    axis = max(range(len(grid)), key=grid.__getitem__)
    if not isinstance(along[axis], torch.Tensor):
        yield Place(grid, dict(names), along, is_last, is_last)
        return
    others = math.prod(grid) // grid[axis]
    for some in along[axis].split(max(Limit.AT_A_TIME // others, 1), axis):  # of all at once, columns took 150 MiB
        yield Place(grid, dict(names), [*along[:axis], some, *along[axis + 1 :]], is_last, is_last)


def _times_of(text: KernelText, place: Place, programs: int, loops: Sequence[int]) -> int | None:
    """How often those `programs` go that are at the place."""
    every: Any = 1
    for number in loops:
        operands = place.operands(text, number, 0, 3)
        is_counted = text.ops[number].name == "scf.for" and len(operands) > 2
        known = is_counted and type(operands[2]) is int and operands[2] > 0
        each = turns(*operands) if known else None
        if each is None:
            return None
        every = every * each
    return int(every.sum()) * programs // every.numel() if isinstance(every, torch.Tensor) else int(every * programs)


def _least(text: KernelText, op: Op, grid: tuple[int, int, int], names: frozenset[tuple[str, int]]) -> int:
    """How many elements a store of every program touches at least: one each, where they rise with the programs."""
    blocks = text.module.entry.body.blocks
    if op.name != "tt.store" or len(op.operands) > 2 or len(blocks) > 1 or op not in blocks[0].ops:
        return 0
    programs = [_along(grid, axis) for axis in range(len(grid))]
    first, *_ = Place(grid, dict(names), programs, last_lane=False).operands(text, op.number, 0, 1) or [None]
    rises = isinstance(first, torch.Tensor) and bool((first.flatten().diff() > 0).all())
    return first.numel() if rises else 0


def _along(grid: tuple[int, int, int], axis: int) -> Any:
    """The ids of programs along an axis, which has a dimension of its own; None of too many."""
    if grid[axis] == 1:
        return 0
    if math.prod(grid) > Limit.PROGRAMS:
        return None
    return torch.arange(grid[axis]).view([-1 if one == axis else 1 for one in range(len(grid))])


@functools.lru_cache(maxsize=256)
def accesses(text: KernelText) -> tuple[CountedAccess, ...]:
    """The loads and stores of a kernel; those of a function that is called may be in any loop, and have no bound."""
    found, loops = list[CountedAccess](), dict[int, tuple[int, ...]]()
    for op in text.ops:
        if op.name in ("scf.for", "scf.while"):
            inner = (one.number for region in op.regions for one in operations(region))
            loops |= {number: (*loops.get(number, ()), op.number) for number in inner}
    own = {op.number for op in operations(text.module.entry.body)}
    for op in (op for op in text.ops if op.name in LOADS | STORES | ATOMICS):
        pointers = text.flow.behind(op.operands[:1], sources=text.flow.pointed)
        ends = frozenset(one for one in pointers if not text.flow.pointed(one))
        asked = op.operands if op.name.startswith("tt.descriptor") else op.operands[:1]  # its indices too
        is_bound = op.number in own and text.computed_from(asked).isdisjoint(LOADS | ATOMICS)
        is_known = op.number in own and ends and all(one in text.arguments for one in ends)
        type = op.result_types[0] if op.name in LOADS else op.operand_types[1]
        around = loops.get(op.number, ()) if is_bound else None
        found.append(CountedAccess(op, ends if is_known else None, math.prod(type.shape), around))
    return tuple(found)
