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
from gradekit.unseen.scope import CallScope, fraction_choices, fractions
from gradekit.unseen.solving import tried
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

INSTRUCTIONS = 8
"""Characters of a way's digest that stand for the instructions that are executed; the others stand for launches."""

TOGETHER = 200
"""Calls that the submission's process is asked about at a time."""

_SPREAD = (*range(1100, 16_000, 41), *(k * k for k in range(34, 150, 2)), *(int(16_000 * 1.05**k) for k in range(100)))
"""Further sizes of a single dimension."""

AskWays = Callable[[str, Sequence[Sequence[Argument]]], Sequence[str]]
"""Gives a digest of the way of each call; "" for one that fails."""


@dataclass
class HostSweep:
    """Runs host code alone: `ask` the submission's process; `seen` has the ways by entry and arguments."""

    ask: AskWays
    hints: SourceHints
    _known: dict[str, str] = field(default_factory=dict)

    def further(
        self, draws: Draws, forms: Sequence[TracedForm], lines: Sequence[int], strides: bool
    ) -> list[FurtherCall]:
        """Calls that go ways which none of the check's `forms` goes; `lines` are to blame for that, if any. With
        `strides`, they are looked for among many strides."""
        mine = [form for form in forms if fits(draws, form) and form.elements and not form.wanted]
        if not mine or not (lines or self.hints.places or self.hints.fractions and fractions(draws)):
            return []
        entry = mine[0].entry
        seen = set(self._ways(entry, [form.args for form in mine]))
        found: dict[str, list[Call]] = {}
        for form in {tuple(view.dtype for view in one.views): one for one in mine}.values():
            calls = [*self._calls(draws, form, bool(lines), strides)]
            for call, way in zip(calls, self._ways(entry, [arguments(call) for call in calls]), strict=True):
                if way and way not in seen:
                    found.setdefault(way, []).append(call)
        known = {way[:INSTRUCTIONS] for way in seen}
        new = sorted(found, key=lambda way: (way[:INSTRUCTIONS] in known, len(found[way]), way))
        rarest = [found[way] for way in new][:MOST_NEW]
        line = min((*lines, *self.hints.places), default=None)
        return [FurtherCall(calls[0], "host code goes a way that no other example goes", line) for calls in rarest]

    def _calls(self, draws: Draws, form: TracedForm, sizes: bool, strides: bool) -> Iterator[Call]:
        scaled = [n * unit for n in self.hints.fractions[:SCALED] for unit in (0.1, 0.01, 0.001)]
        for more in fraction_choices(draws, [*self.hints.fractions, *scaled]):
            yield made(draws, form, _small(draws, form), 0, more)
        if sizes:
            yield from _by_size(draws, form, self.hints)
        if sizes or self.hints.places:
            yield from _by_layout(draws, form, self.hints if strides else SourceHints())
            for more in _aliases(draws, self.hints):
                yield made(draws, form, _small(draws, form), 0, more)

    def _ways(self, entry: str, calls: Sequence[Sequence[Argument]]) -> list[str]:
        texts = [repr((entry, args)) for args in calls]
        new = {text: args for text, args in zip(texts, calls, strict=True) if text not in self._known}
        names, wanted = list(new), list(new.values())
        for first in range(0, len(wanted), TOGETHER):
            part = slice(first, first + TOGETHER)
            self._known |= dict(zip(names[part], self.ask(entry, wanted[part]), strict=True))
        return [self._known[text] for text in texts]


def arguments(call: Call) -> tuple[Argument, ...]:
    """A call's arguments as the tracer takes them; tensors that are one object share a storage."""
    storages: dict[int, int] = {}
    return tuple(
        arg.view(storages.setdefault(arg.identity, len(storages))) if isinstance(arg, Input) else Scalar(arg)
        for arg in call
    )


def _by_size(draws: Draws, form: TracedForm, hints: SourceHints) -> Iterator[Call]:
    scope = CallScope(draws, rank_of(draws, form))
    columns = tried(scope, (*hints.whole, *_SPREAD))
    if not columns:
        return
    allowed = scope.allows(columns)
    columns = {name: column[allowed] for name, column in columns.items()}
    for turn, place in enumerate(_places(columns, hints)):
        yield made(draws, form, {name: int(column[place]) for name, column in columns.items()}, turn, {})


def _places(columns: Mapping[str, torch.Tensor], hints: SourceHints) -> list[int]:
    """Which of many sizes to run: those near numbers of the text, then small ones, then every so many of the rest."""
    rows = list(dict.fromkeys(zip(*(column.tolist() for column in columns.values()), strict=True)))
    first = {
        row: place
        for place, row in reversed(list(enumerate(zip(*(c.tolist() for c in columns.values()), strict=True))))
    }
    near = {n + d for n in hints.whole for d in (-1, 0, 1)}
    near |= set(_SPREAD) if len(columns) == 1 else set()
    small = DENSE if len(columns) == 1 else DENSE // (2 * len(columns))

    def weight(row: tuple[int, ...]) -> tuple[Any, ...]:
        return not all(n in near for n in row), not any(n in near for n in row), max(row) > small, max(row), row

    ranked = sorted(rows, key=weight)
    head = ranked[: MOST_SIZES - 100]
    rest = ranked[len(head) :]
    return [first[row] for row in [*head, *rest[:: max(len(rest) // 100, 1)]]]


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
