"""Further calls of a check: made by its own draws, with what was solved for in place of what they would pick."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gradekit.domain import ANY_DIMENSIONS
from gradekit.inputs.draws import Call, Draws
from gradekit.inputs.layouts import GAPS, row_major, variants
from gradekit.program import View
from gradekit.unseen.host_branches import TracedForm

DENSE = ("contiguous", "offset")
"""Layouts whose strides are those of a contiguous tensor."""

PLAIN_VALUES = ("normal", "mixed", "positive", "grid")
"""Kinds of values that show most mistakes, the best first."""


@dataclass(frozen=True)
class FurtherCall:
    """A call that a check is to try as well, why (a comparison, at a line), and the line of
    the submission that asks for it. `beside` says that it is not for a branch, but for a loop that runs several
    times or a mask of whole tiles: such calls have a budget of their own. `tried` is to be called where the call is
    made."""

    call: Call
    why: str
    line: int | None = None
    beside: bool = False
    tried: Callable[[], object] = field(default=lambda: None, compare=False)


@dataclass
class ChosenPick:
    """A `gradekit.inputs.draws.Pick` that takes what is `chosen` by label, and else something plain."""

    chosen: Mapping[str, Any]
    turn: int = 0
    preferred: Callable[[str, Sequence[Any]], Any] | None = None
    _seen: dict[str, Any] = field(default_factory=dict)

    def __call__(self, label: str, options: Sequence[Any]) -> Any:
        picked = self._of(label, options)
        self._seen[label] = picked
        return picked

    def _of(self, label: str, options: Sequence[Any]) -> Any:
        if label in self.chosen:
            return self.chosen[label]
        if label == "seed of values":
            return 77 + self.turn
        if label.startswith("values "):
            return plain_values(options, self.turn)
        if label.startswith(("layout ", "dtype ")) or label == "alias":
            return options[0]
        return options[self.turn % len(options)]


def plain_values(options: Sequence[Any], turn: int = 0) -> Any:
    """The kind, or the kinds together, that show most."""
    for kind in PLAIN_VALUES:
        if kind in options or (kind,) * len(options[0]) in options:
            return kind if kind in options else (kind,) * len(options[0])
    return options[turn % len(options)]


def like(draws: Draws, form: TracedForm) -> dict[str, Any]:
    """What picks a call of `draws` that is like a traced one: its rank and dtypes, where the check has them."""
    found: dict[str, Any] = {"rank": rank_of(draws, form)}
    views = dict(zip((tensor.name for tensor in draws.tensors), form.views, strict=False))
    for name, options in draws.dtypes:
        used = [views[t.name].dtype for t in draws.tensors if t.dtype == name and t.name in views]
        found[f"dtype {name}"] = next((dtype for dtype in used if dtype in options), options[0])
    return found


def widest(draws: Draws, forms: Sequence[TracedForm]) -> TracedForm | None:
    """A traced call like those of `draws` without tensors of 16-bit floats, in which large sums overflow."""
    mine = (form for form in forms if fits(draws, form) and form.elements)
    return next((form for form in mine if not any("float16" in view.dtype for view in form.views)), None)


def values_of(draws: Draws, kinds: Mapping[str, str]) -> dict[str, Any]:
    """What picks these kinds of values by the names of tensors, and for the others the check's first."""
    return {f"values {names}": _together(names, options, kinds) for names, options in draws.values}


def _together(names: str, options: Sequence[Any], kinds: Mapping[str, str]) -> Any:
    """The kinds for tensors that are drawn together."""
    each = names.split()
    if len(each) == 1:
        return kinds.get(names, options[0])
    return tuple(kinds.get(name, options[0][place]) for place, name in enumerate(each))


def rank_of(draws: Draws, form: TracedForm) -> int:
    """How many dimensions without a name a traced call has."""
    for tensor, view in zip(draws.tensors, form.views, strict=False):
        if ANY_DIMENSIONS in tensor.shape:
            rank = len(view.shape) - len(tensor.shape) + 1
            return rank if rank in draws.ranks else draws.ranks[0]
    return draws.ranks[0] if draws.ranks else 0


def fits(draws: Draws, form: TracedForm) -> bool:
    """Whether a traced call has the tensors that calls of `draws` have."""
    views = form.views
    pairs = zip(draws.tensors, views, strict=False)
    return len(views) <= len(draws.tensors) and all(_rank_fits(tensor.shape, view) for tensor, view in pairs)


def _rank_fits(shape: Sequence[str], view: View) -> bool:
    least = len(shape) - (ANY_DIMENSIONS in shape)
    return len(view.shape) >= least if ANY_DIMENSIONS in shape else len(view.shape) == least


def made(draws: Draws, form: TracedForm, chosen: Mapping[str, int], turn: int, more: Mapping[str, Any]) -> Call:
    """The call with the sizes and scalars that were chosen."""
    sizes = {f"size {name}": n for name, n in chosen.items()}
    return draws.picked(ChosenPick({**like(draws, form), **sizes, **chosen, **more}, turn))


def contiguous_of(draws: Draws, form: TracedForm) -> tuple[tuple[str, str, int], ...]:
    """The tensors of a traced call that lie in memory row by row, as `CallScope.laid_out` has them."""
    views = zip(draws.tensors, form.views, strict=False)
    return tuple((tensor.name, "contiguous", 0) for tensor, view in views if view.stride == row_major(view.shape))


def each_layout(draws: Draws, form: TracedForm) -> Iterator[tuple[tuple[str, str, int], ...]]:
    """Each layout, in each variant, that the check has for the other tensors of a traced call, with those beside it;
    those alone where there are no others."""
    known = dict(draws.layouts)
    plain = contiguous_of(draws, form)
    options: dict[str, list[tuple[str, str, int]]] = {}
    for tensor, view in zip(draws.tensors, form.views, strict=False):
        if tensor.name not in {name for name, _, _ in plain}:
            options[tensor.name] = [*_variants(tensor.name, known[tensor.name], len(view.shape))]
    if not options:
        yield plain
    elif all(options.values()):
        longest = max(map(len, options.values()))
        for shift, turn in itertools.product(range(longest if len(options) > 1 else 1), range(longest)):
            places = (turn + shift * number for number in range(len(options)))
            yield (*plain, *(each[place % len(each)] for place, each in zip(places, options.values(), strict=True)))


def _variants(name: str, options: Sequence[str], rank: int) -> Iterator[tuple[str, str, int]]:
    for option in options:
        layout, _, only = option.partition(":")
        if layout not in DENSE:
            yield from ((name, layout, number) for number in ([int(only)] if only else range(variants(layout, rank))))


def layouts_like(draws: Draws, form: TracedForm) -> list[dict[str, str]]:
    """What picks layouts like those of a traced call: one choice where all its tensors are contiguous; else each layout
    of the check, for those that are not. Those that begin further on in their memory still do."""
    views = {tensor.name: view for tensor, view in zip(draws.tensors, form.views, strict=False)}
    known = dict(draws.layouts)
    shifted = {
        f"layout {name}": f"offset:{GAPS.index(view.offset)}"
        for name, view in views.items()
        if view.offset in GAPS and "offset" in known[name]
    }
    strided = {name: len(view.shape) for name, view in views.items() if view.stride != row_major(view.shape)}
    others = {
        name: [
            one
            for one in options
            if one.partition(":")[0] not in DENSE and variants(one.partition(":")[0], strided[name])
        ]
        for name, options in draws.layouts
        if name in strided
    }
    most = max(map(len, others.values()), default=0)
    if not most or not all(others.values()):
        return [shifted]
    return [
        {**shifted, **{f"layout {name}": options[turn % len(options)] for name, options in others.items()}}
        for turn in range(most)
    ]
