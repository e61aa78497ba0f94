"""How the tensors of a further call lie in memory, where host code asks for strides or for where a tensor begins.

A check's own layouts have few steps and few offsets. What a submission compares them with stands in its text, so that
these numbers are tried as well, of tensors that the check steps or shifts at all.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gradekit.inputs.draws import Call, Draws
from gradekit.inputs.layouts import GAPS, Placement, place, row_major, variants
from gradekit.inputs.spec import Input
from gradekit.program import View
from gradekit.unseen.host_branches import TracedForm

DENSE = ("contiguous", "offset")
"""Layouts whose strides are those of a contiguous tensor."""

STEPPED = ("every_second", "stepped")
"""A tensor that a check draws in one of these may have any step between elements."""

MOST_STEP, MOST_STEPS = 512, 9
"""The longest step between elements, and how many are tried for a tensor."""

MOST_OFFSET, MOST_OFFSETS = 4096, 20
"""The same of offsets."""

BASES = 4
"""Layouts that are tried with each offset."""


@dataclass(frozen=True)
class LaidOut:
    """The tensor `name` in a layout: with strides `step` times as long, and `offset` elements into its storage, where
    that is not as the layout has it."""

    name: str
    layout: str = "contiguous"
    variant: int = 0
    step: int = 1
    offset: int | None = None

    def place(self, shape: tuple[Any, ...]) -> Placement:
        """Strides and offset, in elements."""
        strides, offset = place(self.layout, shape, self.variant)
        return tuple(self.step * stride for stride in strides), offset if self.offset is None else self.offset

    @property
    def picks(self) -> dict[str, Any]:
        """What picks it for a call: see `moved`, too."""
        found = {"layout": self.layout, "variant": self.variant, "step": self.step, "offset": self.offset}
        return {f"{label} {self.name}": value for label, value in found.items()}


def moved(draws: Draws, call: Call, picks: Mapping[str, Any]) -> Call:
    """The call with the steps and offsets that `picks` has beside its layouts; tensors that overlap stay."""
    names = iter(draws.tensors)
    return tuple(_moved(arg, next(names).name, picks) if isinstance(arg, Input) else arg for arg in call)


def _moved(spec: Input, name: str, picks: Mapping[str, Any]) -> Input:
    step, offset = picks.get(f"step {name}", 1), picks.get(f"offset {name}")
    if spec.base or step == 1 and offset is None:
        return spec
    stride = tuple(step * s for s in spec.stride)
    return replace(spec, stride=stride, offset=spec.offset if offset is None else offset)


def each_layout(
    draws: Draws,
    form: TracedForm,
    numbers: Sequence[int] = (),
    first: Collection[str] = (),
    shifted: Collection[str] = (),
) -> Iterator[tuple[LaidOut, ...]]:
    """How the tensors of a traced call may lie, those that are contiguous as they are: as in the call itself; then one
    of them, those in `first` before others, in each layout and variant that the check has for it; then all.

    Steps may be any of `numbers`, too, as may the offsets of tensors that are `shifted`; others keep theirs.
    """
    views = _views(draws, form)
    bases = _each_once(_bases(draws, views, numbers, first))
    if not shifted:
        yield from (tuple(_at(one, views) for one in base) for base in bases)
        return
    kept = [*itertools.islice(bases, BASES)]
    offsets = {name: _offsets(numbers) for name in views if name in shifted and _may_shift(draws, name)}
    for chosen in itertools.product(*offsets.values()):
        new = dict(zip(offsets, chosen, strict=True))
        for base in kept:
            yield tuple(replace(one, offset=new.get(one.name, _at(one, views).offset)) for one in base)


def _each_once(found: Iterable[tuple[LaidOut, ...]]) -> Iterator[tuple[LaidOut, ...]]:
    known = set[tuple[LaidOut, ...]]()
    for one in found:
        if one not in known:
            known.add(one)
            yield one


def _at(laid_out: LaidOut, views: Mapping[str, View]) -> LaidOut:
    """The layout with the offset of a contiguous tensor that has one."""
    offset = views[laid_out.name].offset
    return replace(laid_out, offset=offset) if offset and laid_out.layout in DENSE else laid_out


def _bases(
    draws: Draws, views: Mapping[str, View], numbers: Sequence[int], first: Collection[str]
) -> Iterator[tuple[LaidOut, ...]]:
    plain = [LaidOut(name) for name, view in views.items() if view.stride == row_major(view.shape)]
    apart = {name: view for name, view in views.items() if view.stride != row_major(view.shape)}
    options = {name: _options(draws, name, view, numbers) for name, view in apart.items()}
    if all(options.values()):
        own = {name: each[0] for name, each in options.items()}
        yield (*plain, *own.values())
        for name in sorted(options, key=lambda name: name not in first):
            yield from ((*plain, *{**own, name: one}.values()) for one in options[name][1:])
        longest = max(map(len, options.values()), default=0) if len(options) > 1 else 0
        for shift, turn in itertools.product(range(longest), range(longest)):
            places = (turn + shift * number for number in range(len(options)))
            yield (*plain, *(each[place % len(each)] for place, each in zip(places, options.values(), strict=True)))


def _options(draws: Draws, name: str, view: View, numbers: Sequence[int]) -> list[LaidOut]:
    """The layouts that the check has for a tensor that is not contiguous, as which it lies itself first."""
    known, rank = dict(draws.layouts)[name], len(view.shape)
    found = [LaidOut(name, layout, n) for layout, only in _split(known) for n in _variants(layout, only, rank)]
    if rank and set(STEPPED) & {layout for layout, _ in _split(known)}:
        steps = dict.fromkeys(n + more for n in numbers for more in ((0, 1, -1) if rank == 1 else (0,)))
        found += [LaidOut(name, step=n) for n in steps if 1 < n <= MOST_STEP][:MOST_STEPS]
    return sorted(found, key=lambda one: one.place(view.shape)[0] != view.stride)


def _split(options: Sequence[str]) -> Iterator[tuple[str, str]]:
    for option in options:
        layout, _, only = option.partition(":")
        if layout not in DENSE:
            yield layout, only


def _variants(layout: str, only: str, rank: int) -> Sequence[int]:
    return [int(only)] if only else range(variants(layout, rank))


def _offsets(numbers: Sequence[int]) -> list[int]:
    near = [n + more for n in numbers for more in (0, 1, -1)]
    found = dict.fromkeys((0, *(n for n in near if 0 <= n <= MOST_OFFSET), *GAPS))
    return [*found][:MOST_OFFSETS]


def _may_shift(draws: Draws, name: str) -> bool:
    return "offset" in dict(draws.layouts)[name]


def layouts_like(draws: Draws, form: TracedForm, asked: Collection[str] = ()) -> list[dict[str, Any]]:
    """What picks layouts like those of a traced call: one choice where all its tensors are contiguous; else each layout
    of the check, for those that are not. Contiguous ones begin where they did, as do those that are `asked` about."""
    views = _views(draws, form)
    plain = {name for name, view in views.items() if view.stride == row_major(view.shape)}
    kept = {
        f"offset {name}": view.offset
        for name, view in views.items()
        if (view.offset and name in plain or name in asked) and _may_shift(draws, name)
    }
    others = {
        name: [layout if not only else f"{layout}:{only}" for layout, only in _split(options)
               if variants(layout, len(views[name].shape))]
        for name, options in draws.layouts
        if name in views and name not in plain
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
