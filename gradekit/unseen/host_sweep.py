"""Calls for which host code goes another way than for any example, found by running
it alone for many sizes and layouts.

For where comparisons cannot be solved: a size that became text, a key, a float. Counted,
and the same for the same submission.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from gradekit.inputs.draws import OVERLAP, Call, Draws
from gradekit.inputs.layouts import variants
from gradekit.inputs.spec import Input
from gradekit.program import Argument, Scalar
from gradekit.unseen.further import FurtherCall, fits, made, rank_of
from gradekit.unseen.host_branches import TracedForm
from gradekit.unseen.scope import FAR, CallScope, fraction_choices, fractions
from gradekit.unseen.solving import possible_sizes
from gradekit.unseen.source_hints import SourceHints

MOST_SIZES = 2600
"""Sizes for which host code is run, for one check and one form of call."""

DENSE = 1100
"""Of a single dimension, all sizes up to this one are among them."""

MOST_NEW = 6
"""Ways of one check that are tried."""

MOST_LAID_OUT = 60
"""Sizes that are tried in every layout."""

SCALED = 12
"""Numbers of the text that are also looked at as tenths, hundredths and thousandths, which may have been counted."""

INSTRUCTIONS, LAUNCHES = 8, 16
"""Characters of a way's digest that stand for the instructions that are executed, and for these and launches together;
the others stand for floats that launches are given."""

MOST_FLOATS = 8
"""Ways that floats alone tell apart: more are computed from the call's own numbers, and say nothing."""

TOGETHER = 100
"""Calls that the submission's process is asked about at a time."""

CALL = 300
"""Instructions of host code that cost as much as what a call costs by itself: about a millisecond."""

MOST_WORK = 4_000_000
"""Instructions of host code in all checks of a submission, each call counting as CALL more: about ten seconds."""

POWERS = tuple(1 << k for k in range(22, 6, -1))
"""The longest first: a budget that ends early leaves out what other sizes are likelier to stand for."""

FIRST_FAR, STEP, STEPS, COARSE = 67, 1.31, 44, 4
"""Lengths that grow up to some millions, each longer than the one before by so much; each of so many at first."""

ALONGSIDE = (1, 50)
"""What the other dimensions are then."""

SHARE = 4
"""One check may take one of so many parts of what is left."""

MOST_EXCEEDED, IN_A_ROW = 3, 240
"""Numbers of the text beyond which sizes are looked at closely, and how many in a row."""

UNITS = (*(1 << k for k in range(4, 23)), *(10**k for k in range(2, 7)))
"""A condition that cannot be followed often asks for a multiple of one of these."""

_SPREAD = (*range(1100, 16_000, 61), *(k * k for k in range(34, 150, 2)), *(int(16_000 * 1.05**k) for k in range(100)))
"""Further sizes of a single dimension."""

AskWays = Callable[[str, Sequence[Sequence[Argument]]], Sequence[tuple[str, int]]]
"""Gives a digest of the way of each call, "" for one that fails, and the instructions of host code that it took."""


@dataclass(frozen=True)
class Candidate:
    """A call to look at, its arguments as the tracer takes them, and their text."""

    call: Call
    args: tuple[Argument, ...]
    text: str


@dataclass
class HostSweep:
    """Runs host code alone: `ask` the submission's process. `left_out` says what the budget did not reach in the check
    that was looked at last."""

    ask: AskWays
    hints: SourceHints
    left_out: str = ""
    _known: dict[str, str] = field(default_factory=dict)
    _left: int = MOST_WORK
    _fractions_of: set[tuple[str, tuple[str, ...]]] = field(default_factory=set)
    _listed: tuple[Draws | None, dict[Any, list[list[Candidate]]]] = (None, {})

    def further(
        self, draws: Draws, forms: Sequence[TracedForm], lines: Sequence[int], strided: Sequence[int]
    ) -> list[FurtherCall]:
        """Calls that go ways which none of the check's `forms` goes; `lines` are to blame for that, if any. For those
        that are `strided`, which compare strides, they are looked for among many strides."""
        self.left_out = ""
        mine = [form for form in forms if fits(draws, form) and form.elements]
        if not mine or not (lines or strided or self.hints.places or self.hints.fractions and fractions(draws)):
            return []
        entry = mine[0].entry
        seen = set(self._ways(entry, [(form.args, _text(entry, form.args)) for form in mine], self._left))
        every: list[tuple[Call, str]] = []
        of_dtypes = {tuple(view.dtype for view in one.views): one for one in mine}.values()
        for number, form in enumerate(of_dtypes):
            share = self._left // SHARE // (len(of_dtypes) - number)
            every += self._taken(entry, self._candidates(draws, form, bool(lines), bool(strided)), share)
        found = _new(every, seen)
        known = {way[:INSTRUCTIONS] for way in seen}
        new = sorted(found, key=lambda way: (way[:INSTRUCTIONS] in known, len(found[way]), way))
        smallest = [min(found[way], key=_elements) for way in new[:MOST_NEW]]
        line = min((*lines, *strided, *self.hints.places), default=None)
        return [FurtherCall(call, "host code goes a way that no other example goes", line) for call in smallest]

    def _candidates(self, draws: Draws, form: TracedForm, sizes: bool, strides: bool) -> list[list[Candidate]]:
        """The groups, with what the tracer is asked: a check has the same ones each time that it looks again. The
        gradient of the result, behind the entry's arguments, is none of them."""
        if self._listed[0] is not draws:
            self._listed = draws, {}
        key = form.entry, len(form.args), tuple((len(view.shape), view.dtype) for view in form.views), sizes, strides
        known = self._listed[1]
        if key not in known:
            groups = self._groups(draws, form, sizes, strides)
            known[key] = [[_candidate(form.entry, call, len(form.args)) for call in group] for group in groups]
        return known[key]

    def _groups(self, draws: Draws, form: TracedForm, sizes: bool, strides: bool) -> Iterator[Iterator[Call]]:
        """Calls to look at, in groups; those of which there are most come last."""
        yield (made(draws, form, _small(draws, form), 0, more) for more in self._fractions(draws, form))
        if sizes:
            yield _far_out(draws, form)
        if sizes or strides or self.hints.places:
            yield (made(draws, form, _small(draws, form), 0, more) for more in _aliases(draws, self.hints))
            yield _by_layout(draws, form, self.hints if strides else SourceHints())
        if sizes:
            yield _by_size(draws, form, self.hints)

    def _fractions(self, draws: Draws, form: TracedForm) -> list[dict[str, float]]:
        """What scalars may be, with these dtypes in one check alone: sizes have no part in it."""
        scaled = [n * unit for n in self.hints.fractions[:SCALED] for unit in (0.1, 0.01, 0.001)]
        chosen = fraction_choices(draws, [*self.hints.fractions, *scaled])
        key = form.entry, tuple(view.dtype for view in form.views[: len(form.args)])
        is_new = bool(chosen) and key not in self._fractions_of
        self._fractions_of |= {key} if is_new else set()
        return chosen if is_new else []

    def _taken(self, entry: str, groups: Sequence[Sequence[Candidate]], budget: int) -> Iterator[tuple[Call, str]]:
        """The calls with their ways, as far as the budget goes: a group may use half of it, the last one all."""
        for number, group in enumerate(groups):
            before, last = self._left, number == len(groups) - 1
            ways = self._ways(entry, [(one.args, one.text) for one in group], budget if last else budget // 2)
            yield from zip([one.call for one in group], ways, strict=False)
            budget -= before - self._left

    def _ways(self, entry: str, calls: Sequence[tuple[Sequence[Argument], str]], budget: int) -> list[str]:
        """Those of the first of the calls, given with their texts: as many as the budget of work allows."""
        found: list[str] = []
        for first in range(0, len(calls), TOGETHER):
            if budget <= 0:
                self.left_out = f"host code was not run for {len(calls) - first:,} of the sizes and layouts to look at"
                break
            part = calls[first : first + TOGETHER]
            before = self._left
            found += self._asked(entry, part)
            budget -= before - self._left
        return found

    def _asked(self, entry: str, calls: Sequence[tuple[Sequence[Argument], str]]) -> list[str]:
        new = {text: args for args, text in calls if text not in self._known}
        answers = self.ask(entry, list(new.values())) if new else ()
        for text, (way, instructions) in zip(new, answers, strict=True):
            self._known[text] = way
            self._left -= CALL + instructions
        return [self._known[text] for _, text in calls]


def _candidate(entry: str, call: Call, count: int) -> Candidate:
    args = arguments(call[:count])
    return Candidate(call, args, _text(entry, args))


def _text(entry: str, args: Sequence[Argument]) -> str:
    return repr((entry, args))


def arguments(call: Call) -> tuple[Argument, ...]:
    """A call's arguments as the tracer takes them; tensors that are one object share a storage."""
    storages: dict[int, int] = {}
    return tuple(
        arg.view(storages.setdefault(arg.identity, len(storages))) if isinstance(arg, Input) else Scalar(arg)
        for arg in call
    )


def _new(every: Sequence[tuple[Call, str]], seen: set[str]) -> dict[str, list[Call]]:
    """The ways that are not among those that were `seen`, with the calls that go them."""
    by_floats: dict[str, set[str]] = {}
    for way in (*seen, *(way for _, way in every)):
        by_floats.setdefault(way[:LAUNCHES], set()).add(way)

    def told(way: str) -> str:
        return way if len(by_floats[way[:LAUNCHES]]) <= MOST_FLOATS else way[:LAUNCHES]

    known, found = {told(way) for way in seen}, dict[str, list[Call]]()
    for call, way in every:
        if way and told(way) not in known:
            found.setdefault(told(way), []).append(call)
    return found


def _elements(call: Call) -> int:
    return sum(arg.numel for arg in call if isinstance(arg, Input))


def _far_out(draws: Draws, form: TracedForm) -> Iterator[Call]:
    """Calls of more and more elements: each dimension by itself, beside short and usual ones, and all together."""
    scope = CallScope(draws, rank_of(draws, form), True, FAR)
    grown = [int(FIRST_FAR * STEP**k) for k in range(STEPS)]
    within = {name: _within(scope, name) for name in scope.names}
    rows = [
        {one: bounded(length if one == name or name is None else other) for one, bounded in within.items()}
        for length in (*grown[::COARSE], *POWERS, *grown)
        for other in ALONGSIDE
        for name in (*scope.sizes, None)
    ]
    columns = {name: torch.tensor([row[name] for row in rows]) for name in within}
    allowed = scope.allows(columns).tolist() if columns and rows else []
    kept = [row for row, may in zip(rows, allowed, strict=False) if may]
    for row in {tuple(row.items()): row for row in kept}.values():
        yield made(draws, form, row, 0, {})


def _within(scope: CallScope, name: str) -> Callable[[int], int]:
    """What makes a size one that `name` may have."""
    listed = scope.listed(name)
    least, most = scope.range(name)
    return lambda size: listed[0] if listed else max(least, min(size, most))


def _by_size(draws: Draws, form: TracedForm, hints: SourceHints) -> Iterator[Call]:
    scope = CallScope(draws, rank_of(draws, form))
    beyond = [*_beyond(hints.whole, IN_A_ROW // max(len(scope.names), 1) ** 2)]
    columns = possible_sizes(scope, (*hints.whole, *beyond, *_SPREAD))
    if not columns:
        return
    for turn, place in enumerate(_places(columns, {n + d for n in hints.whole for d in (-1, 0, 1)} | {*beyond})):
        yield made(draws, form, {name: int(column[place]) for name, column in columns.items()}, turn, {})


def _beyond(numbers: Sequence[int], row: int) -> Iterator[int]:
    """Sizes beyond the first numbers that small ones do not reach, for a comparison may stand beside a condition that
    cannot be solved for: a `row` of them, and the next multiple of each unit."""
    for number in [n for n in numbers if n >= DENSE][:MOST_EXCEEDED]:
        yield from range(number + 1, number + 1 + row)
        yield from (number // unit * unit + unit for unit in UNITS)


def _places(columns: Mapping[str, torch.Tensor], near: set[int]) -> list[int]:
    """Which of many sizes to run: those `near` numbers of the text and small ones, and every so many of the rest, which
    a budget that ends early must not leave out."""
    rows = torch.stack([*columns.values()])
    if not rows.shape[1]:
        return []
    near = near | set(_SPREAD) if len(rows) == 1 else near
    small = DENSE if len(rows) == 1 else DENSE // (2 * len(rows))
    close, largest = torch.isin(rows, torch.tensor(sorted(near), dtype=torch.int64)), rows.amax(dim=0)
    ranked = _ranked(rows, (~close.all(dim=0), ~close.any(dim=0), largest > small, largest))
    together, alone = int(close.all(dim=0).sum()), int(close.any(dim=0).sum())
    ranked = [*ranked[:together], *_each_value_first(rows, ranked[together:alone]), *ranked[alone:]]
    head = ranked[: MOST_SIZES - 100]
    rest = ranked[len(head) :]
    first = MOST_SIZES // 4
    return [*head[:first], *rest[:: max(len(rest) // 100, 1)], *head[first:]]


def _ranked(rows: torch.Tensor, weights: Sequence[torch.Tensor]) -> list[int]:
    """The places of different rows (a column each), the lightest first, and those that weigh the same in order."""
    order = torch.arange(rows.shape[1])
    for key in reversed((*weights, *rows)):
        order = order[key[order].long().argsort(stable=True)]
    ranked = rows[:, order]
    fresh = torch.ones(len(order), dtype=torch.bool)
    fresh[1:] = (ranked[:, 1:] != ranked[:, :-1]).any(dim=0)
    return order[fresh].tolist()


def _each_value_first(rows: torch.Tensor, ranked: Sequence[int]) -> list[int]:
    """The places with those first that bring a value of a dimension which none before them has."""
    seen: list[set[int]] = [set() for _ in rows]
    first, others = list[int](), list[int]()
    for place, row in zip(ranked, rows[:, list(ranked)].T.tolist(), strict=True):
        is_new = any(value not in known for known, value in zip(seen, row, strict=True))
        (first if is_new else others).append(place)
        for known, value in zip(seen, row, strict=True):
            known.add(value)
    return [*first, *others]


def _small(draws: Draws, form: TracedForm) -> dict[str, int]:
    """Some small sizes that the check may have."""
    scope = CallScope(draws, rank_of(draws, form))
    ranges = {name: scope.range(name) for name in scope.names}
    return {name: max(least, min(most, 7 + place)) for place, (name, (least, most)) in enumerate(ranges.items())}


def _by_layout(draws: Draws, form: TracedForm, hints: SourceHints) -> Iterator[Call]:
    """Calls with every layout that the check has, in each variant; with sizes that make
    strides near the numbers of the text."""
    scope = CallScope(draws, rank_of(draws, form))
    base = _small(draws, form)
    near = [n // part - gap for n in hints.whole[:8] for part in (1, 2, 3) for gap in (0, 1, 16, 3, 2, 8, 5)]
    sizes = [base, *({**base, name: n} for name in base for n in dict.fromkeys(near))]
    columns = {name: torch.tensor([one[name] for one in sizes]) for name in base}
    if not columns:
        return
    allowed = scope.allows(columns).tolist()
    for one in [one for one, may in zip(sizes, allowed, strict=True) if may][:MOST_LAID_OUT]:
        for more in _layouts(draws, form):
            yield made(draws, form, one, 0, more)


def _aliases(draws: Draws, hints: SourceHints) -> Iterator[dict[str, Any]]:
    """Arguments that are one tensor; and that overlap, as far apart as numbers of the text say."""
    for level in draws.alias_levels[1:] if draws.aliases else ():
        for distance in dict.fromkeys((1, *(n for n in hints.whole if n > 0))) if level.endswith(OVERLAP) else (1,):
            yield {"alias": level, "distance": distance}


def _layouts(draws: Draws, form: TracedForm) -> Iterator[dict[str, Any]]:
    dims = {tensor.name: len(view.shape) for tensor, view in zip(draws.tensors, form.views, strict=False)}
    for name, options in draws.layouts:
        for option in options if name in dims else ():  # what a forward pass is not given has no layout here
            layout, _, only = option.partition(":")
            for variant in [int(only)] if only else range(variants(layout, dims[name])):
                yield {f"layout {name}": option, f"variant {name}": variant}
