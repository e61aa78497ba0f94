"""How the tensors of a further call lie in memory, where host code asks for strides or for where a tensor begins: as
the layouts of the check have it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from gradekit.inputs.draws import Draws
from gradekit.inputs.layouts import Placement, place, row_major, variants
from gradekit.program import View
from gradekit.unseen.host_branches import TracedForm

DENSE = ("contiguous", "offset")
"""Layouts whose strides are those of a contiguous tensor."""


@dataclass(frozen=True)
class LaidOut:
    """The tensor `name` in a variant of a layout."""

    name: str
    layout: str = "contiguous"
    variant: int = 0

    def place(self, shape: tuple[Any, ...]) -> Placement:
        """Strides and offset, in elements."""
        return place(self.layout, shape, self.variant)

    @property
    def picks(self) -> dict[str, Any]:
        """What picks it for a call."""
        return {f"layout {self.name}": self.layout, f"variant {self.name}": self.variant}


def each_layout(
    draws: Draws, form: TracedForm, first: Collection[str] = (), shifted: Collection[str] = ()
) -> Iterator[tuple[LaidOut, ...]]:
    """How the tensors of a traced call may lie: as in the call itself; then one of them, those in `first` before
    others, in each layout and variant that the check has for it; then all. Those that are contiguous stay so, and begin
    elsewhere only if they are `shifted`."""
    options = {name: _options(draws, name, view, name in shifted) for name, view in _views(draws, form).items()}
    if not all(options.values()):
        return
    own = {name: each[0] for name, each in options.items()}
    found = [own]
    for name in sorted(options, key=lambda name: name not in first):
        found += [own | {name: one} for one in options[name][1:]]
    several = [name for name, each in options.items() if len(each) > 1]
    longest = max((len(options[name]) for name in several[1:] and several), default=0)
    for shift in range(longest):
        for turn in range(longest):
            each = enumerate(several)
            found.append(own | {name: options[name][(turn + shift * n) % len(options[name])] for n, name in each})
    yield from dict.fromkeys(tuple(one.values()) for one in found)


def _options(draws: Draws, name: str, view: View, shifted: bool) -> list[LaidOut]:
    """The layouts that a tensor may have, the one in which it lies itself first."""
    is_dense = view.stride == row_major(view.shape)
    every = [option.partition(":") for option in dict(draws.layouts)[name]]
    found = [
        LaidOut(name, layout, variant) for layout, _, only in every if (layout in DENSE) == is_dense
        for variant in ([int(only)] if only else range(variants(layout, len(view.shape))))
    ]  # fmt: skip
    found.sort(
        key=lambda one: (
            one.place(view.shape)[0] != view.stride,
            is_dense and bool(view.offset) != bool(one.place(view.shape)[1]),
        )
    )
    return found if shifted or not is_dense else found[:1] or [LaidOut(name)]


def layouts_like(draws: Draws, form: TracedForm) -> list[dict[str, Any]]:
    """What picks layouts like those of a traced call: one choice where all its tensors are contiguous; else each layout
    of the check, for those that are not."""
    views, known = _views(draws, form), dict(draws.layouts)
    plain = {name for name, view in views.items() if view.stride == row_major(view.shape)}
    kept = {f"layout {name}": "offset" for name in plain if views[name].offset and "offset" in known[name]}
    others = {
        name: [one for one in known[name] if one.partition(":")[0] not in DENSE
               and variants(one.partition(":")[0], len(view.shape))]
        for name, view in views.items() if name not in plain
    }  # fmt: skip
    most = max(map(len, others.values()), default=0)
    if not most or not all(others.values()):
        return [kept]
    return [
        {**kept, **{f"layout {name}": options[turn % len(options)] for name, options in others.items()}}
        for turn in range(most)
    ]


def _views(draws: Draws, form: TracedForm) -> dict[str, View]:
    return {tensor.name: view for tensor, view in zip(draws.tensors, form.views, strict=False)}
