"""The covering design of a check: the calls that it makes before Hypothesis draws any, and what they cover.

A test function has one if its only strategy was made by `gradekit.inputs.calls`.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from gradekit.compat.hypothesis import strategies
from gradekit.inputs.calls import draws_of
from gradekit.inputs.covering import Row
from gradekit.inputs.draws import Draws, shape_parts
from gradekit.inputs.layouts import BY_RANK
from gradekit.plugin.profiles import Limit, Profile
from gradekit.reuse import SharedCache, shared

if TYPE_CHECKING:
    from gradekit.judge.failure import Failure
    from gradekit.unseen.further import FurtherCall


@dataclass(frozen=True)
class Planned:
    """A row of a design, the test's arguments for it, and the numbers by which Hypothesis would draw them."""

    row: Row
    given: Mapping[str, Any]
    numbers: Sequence[int]


@dataclass(frozen=True)
class Design:
    """The rows that a check runs, of `rows_in_all` that its design has; no two give the same arguments."""

    planned: tuple[Planned, ...]
    strength: int
    rows_in_all: int

    @property
    def given(self) -> list[Mapping[str, Any]]:
        """The arguments of each row."""
        return [planned.given for planned in self.planned]

    def numbers(self, given: Mapping[str, Any]) -> Sequence[int] | None:
        """The numbers by which Hypothesis would draw these arguments; None where no row has them."""
        return next((planned.numbers for planned in self.planned if planned.given == given), None)

    def coverage(self, has_run: Callable[[Mapping[str, Any]], bool], examples: int) -> dict[str, Any]:
        """What the rows that have run cover, for the report, of a check that ran so many `examples` in all."""
        rows = [planned.row for planned in self.planned if has_run(planned.given)]
        seen = {name: Counter(str(row[name]) for row in rows) for name in (self.planned[0].row if self.planned else ())}
        return {
            "strength": self.strength, "rows": len(rows), "of": self.rows_in_all, "drawn": max(examples - len(rows), 0),
            "factors": {name: dict(levels) for name, levels in seen.items() if len(levels) > 1},
        }  # fmt: skip


DESIGN = pytest.StashKey[Design | None]()  # the design of a check that runs


def known_design(item: pytest.Item, profile: Profile, seed: int) -> Design | None:
    """`design_of` the test of a check, which any submission has the same of."""
    key = cache_key(item, seed, profile)
    found = _designs.get(key)
    if found is None:
        test = getattr(item, "obj", None)
        found = (design_of(test, profile, seed, **_part_of(item, drawn_by(test))),)
        _designs.put(key, found)
    return found[0]


def drawn_by(test: Any) -> tuple[str, Draws] | None:
    """The parameter of a test function that its only strategy fills, and what that draws from; None for others."""
    given = [(name, draws_of(strategy)) for name, strategy in strategies(test).items()]
    return (given[0][0], given[0][1]) if len(given) == 1 and given[0][1] is not None else None


def _part_of(item: pytest.Item, drawn: tuple[str, Draws] | None) -> dict[str, int]:
    """Which `part` a check has `of` its test's design, where the test is run for each of several dtypes: the dtype is a
    factor like any other."""
    dtypes = [one for options in drawn[1].entry.dtypes.values() for one in options] if drawn else []
    for name, values, *_ in (mark.args for mark in item.iter_markers("parametrize")):
        if dtypes and isinstance(item, pytest.Function) and all(value in dtypes for value in values):
            return {"part": values.index(item.callspec.params[name]), "of": len(values)}
    return {}


def design_of(test: Any, profile: Profile, seed: int = 0, **part: int) -> Design | None:
    """The design of a test function under `profile`, or the `part` of it that `Draws.design` gives; None where it has
    none. The simplest rows come first: contiguous, then small. Another `seed` takes other sizes of the same classes,
    other variants of the same layouts, and other values."""
    drawn = drawn_by(test)
    if drawn is None:
        return None
    name, draws = drawn
    planned: dict[str, Planned] = {}
    rows = draws.design(profile.strength, **part)
    for turn, (row, numbered) in enumerate(_in_turn(draws, rows)):
        call, numbers = draws.call(row, turn + seed, {name: number + seed for name, number in numbered.items()})
        planned.setdefault(repr(call), Planned(row, {name: call}, numbers))
    chosen = sorted(planned.values(), key=lambda one: simplicity(one.given))
    kept = sorted(telling([planned.row for planned in chosen], profile.at_most))
    return Design(tuple(chosen[place] for place in kept), profile.strength, len(rows))


def telling(rows: Sequence[Row], most: int, seen: Collection[tuple[str, Hashable]] = ()) -> list[int]:
    """The places of at most so many of the rows, one after the other that with the most levels, and then pairs of
    levels, which none before it has; of equals, that farthest from those before it. Where levels have been `seen`,
    those alone that have another."""
    if len(rows) <= most and not seen:
        return [*range(len(rows))]
    levels = [[*row.items()] for row in rows]
    pairs = [set(itertools.combinations(each, 2)) for each in levels]
    left, taken = {place: {*each} - {*seen} for place, each in enumerate(levels)}, list[int]()
    while len(taken) < most and any(left.values() if seen else left):

        def worth(place: int) -> tuple[int, int, int, int]:
            away = min((abs(place - other) for other in taken), default=0)
            return len(left[place]), len(pairs[place]), away, -place

        best = max(left, key=worth)
        new, new_pairs = left.pop(best), pairs[best]
        taken.append(best)
        for place in left:
            left[place] -= new
            pairs[place] -= new_pairs
    return taken


def _in_turn(draws: Draws, rows: Sequence[Row]) -> Iterator[tuple[Row, dict[str, int]]]:
    """Each row with the number of the variant of each tensor's layout: the rows of one layout have one after the other;
    of one that has other variants for each number of dimensions, the rows of each, which begin with other variants."""
    seen: Counter[tuple[str, Any, int]] = Counter()
    for row in rows:
        rank = int(str(row.get("rank", 0)))
        laid_out = {}
        for tensor in draws.tensors:
            layout = str(row[f"layout {tensor.name}"])
            dims = len(shape_parts(tensor, rank)) if layout in BY_RANK and len(draws.ranks) > 1 else 0
            laid_out[tensor.name] = tensor.name, layout, dims
        yield row, {name: seen[one] + max(one[2] - 2, 0) * one[2] for name, one in laid_out.items()}
        seen.update(laid_out.values())


# --- example cache ----------------------------------------------------------------------------------------------------


DrawnArguments = Mapping[str, Any]  # what was drawn for one example, by the name of the parameter

_designs: SharedCache[Hashable, tuple[Design | None]] = shared(Limit.CACHED_CHECKS)
_drawn: SharedCache[Hashable, tuple[DrawnArguments, ...]] = shared(Limit.CACHED_CHECKS)


def cache_key(item: pytest.Item, seed: int | None, profile: Profile) -> Hashable:
    """What the examples of a check depend on: the test as it stands in its file, the seed and the profile."""
    stat = item.path.stat()
    return (item.nodeid, str(item.path), stat.st_mtime_ns, stat.st_size, seed, profile)


def drawn_once(key: Hashable, draw: Callable[[], Sequence[DrawnArguments]]) -> tuple[DrawnArguments, ...]:
    """What `draw` gives for the check of this key, in its order; nothing where a test could change the values."""
    kept = _drawn.get(key)
    if kept is None:
        examples = draw()
        fixed = all(_is_fixed(value) for given in examples for value in given.values())
        kept = tuple({repr(given): given for given in examples}.values()) if fixed else ()
        _drawn.put(key, kept)
    return kept


def _is_fixed(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return not hasattr(value, "data_ptr")  # a tensor can be hashed and changed


def simplicity(given: DrawnArguments) -> tuple[int, ...]:
    """A measure of how hard an example is to read: those of its specs added up, then the size of its numbers."""
    values = list(flattened(tuple(given.values())))
    specs = [value.simplicity for value in values if hasattr(value, "simplicity")]
    numbers = sum(abs(int(value)) for value in values if isinstance(value, (int, float)) and math.isfinite(value))
    return (*map(sum, zip(*specs, strict=True)), numbers)


def flattened(value: Any) -> Iterator[Any]:
    """The values in nested tuples and sets, one after the other."""
    if not isinstance(value, (tuple, frozenset)):
        yield value
        return
    for item in value:
        yield from flattened(item)


# --- calls for what the design has not seen: `further_run` makes them -------------------------------------------------


@dataclass
class FurtherRun:
    """The further calls of one check: those that have `ran`, by the text of their arguments; its `branches`, as the
    report has them; what is `untried` because the grader failed, as lines of the submission with why; how many of the
    calls have a `long` dimension; and what a call that is too long to run leaves out, its `shortage`."""

    ran: dict[str, FurtherCall] = field(default_factory=dict)
    branches: dict[str, Any] = field(default_factory=dict)
    untried: dict[tuple[int | None, str], None] = field(default_factory=dict)
    long: int = 0
    shortage: Failure | None = None

    def origin(self, given: Any) -> str:
        """Where an example came from; "" for one that is not of these."""
        call = self.ran.get(repr(given))
        return "" if call is None else f"so that in line {call.line} {call.why}" if call.line else call.why

    def as_data(self) -> dict[str, Any]:
        """As the report record holds it."""
        if not self.branches and not self.ran:
            return {}
        return {"solved": len(self.ran) - self.long, "long": self.long, "branches": self.branches}
