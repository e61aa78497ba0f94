"""Further calls of a check: made by its own draws, with what was solved for in place of what they would pick."""

import itertools
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from gradekit.domain import ANY_DIMENSIONS
from gradekit.inputs.draws import GIVEN, Call, Draws
from gradekit.inputs.spec import Input
from gradekit.unseen.host_branches import TracedForm

PLAIN_VALUES = ("normal", "mixed", "positive", "grid")
"""Kinds of values that show most mistakes, the best first."""

SEED = 77
"""Further calls have values of this seed and on."""


Decision = tuple[int | None, str, bool]
"""A line of the submission, a way that it can go, as a sentence, and whether a call has."""


class Purpose(StrEnum):
    """What a further call is for; calls for each have a budget of their own."""

    BRANCH = "a branch"
    BESIDE = "a loop that runs several times, a mask of whole tiles, or another layout"
    VARIED = "what only further calls have met, with what else the check is about"


@dataclass(frozen=True)
class FurtherCall:
    """A call that a check is to try as well, why (a comparison, at a line), and the line of
    the submission that asks for it. `tried` is to be called where the call is made, `is_wanted` tells before whether
    calls that were made meanwhile have left anything to see. It may take `most_work` (0: what is left of the check's);
    `in_part`, some programs of a large grid are run; `of_sizes`, any other call of its sizes shows as much."""

    call: Call
    why: str
    line: int | None = None
    purpose: Purpose = Purpose.BRANCH
    tried: Callable[[], object] = field(default=lambda: None, compare=False)
    is_wanted: Callable[[], bool] = field(default=lambda: True, compare=False)
    most_work: int = 0
    in_part: bool = False
    of_sizes: bool = False


@dataclass
class ChosenPick:
    """A `gradekit.inputs.draws.Pick` that takes what is `chosen` by label, and else something plain."""

    chosen: Mapping[str, Any]
    turn: int = 0

    def __call__(self, label: str, options: Sequence[Any]) -> Any:
        if label in self.chosen:
            return self.chosen[label]
        if label == "seed of values":
            return self.chosen.get("seed", SEED + self.turn)
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
    given = len(form.views) - len(draws.tensors) + len(draws.entry.optional)
    found: dict[str, Any] = {"rank": rank_of(draws, form), GIVEN: max(given, 0)}
    views = dict(zip((tensor.name for tensor in draws.tensors), form.views, strict=False))
    for name, options in draws.dtypes:
        used = [views[t.name].dtype for t in draws.tensors if t.dtype == name and t.name in views]
        found[f"dtype {name}"] = next((dtype for dtype in used if dtype in options), options[0])
    return found


def values_of(draws: Draws, kinds: Mapping[str, str]) -> dict[str, Any]:
    """What picks these kinds of values by the names of tensors, and for the others the check's first."""
    found: dict[str, Any] = {}
    for names, options in draws.values:
        first = options[0] if " " in names else options[:1]
        each = tuple(kinds.get(name, kind) for name, kind in zip(names.split(), first, strict=True))
        found[f"values {names}"] = each if " " in names else each[0]
    return found


def rank_of(draws: Draws, form: TracedForm) -> int:
    """How many dimensions without a name a traced call has."""
    for tensor, view in zip(draws.tensors, form.views, strict=False):
        if ANY_DIMENSIONS in tensor.shape:
            rank = len(view.shape) - len(tensor.shape) + 1
            return rank if rank in draws.ranks else draws.ranks[0]
    return draws.ranks[0] if draws.ranks else 0


def fits(draws: Draws, form: TracedForm) -> bool:
    """Whether a traced call has the tensors that calls of `draws` have."""
    pairs = zip(draws.tensors, form.views, strict=False)
    more = [(len(view.shape) - len(tensor.shape), ANY_DIMENSIONS in tensor.shape) for tensor, view in pairs]
    fitting = (many >= -1 if is_open else many == 0 for many, is_open in more)
    return len(form.views) <= len(draws.tensors) and all(fitting)


def made(draws: Draws, form: TracedForm, chosen: Mapping[str, int], turn: int | None, more: Mapping[str, Any]) -> Call:
    """The call with the sizes and scalars that were chosen, strides and offsets too where they were (see
    `Candidates.solutions`), and `more` as a pick's label has it; in a `turn`, or that of the sizes in all checks."""
    turn = zlib.crc32(repr(sorted(chosen.items())).encode()) % 97 if turn is None else turn
    sizes = {f"size {name}": n for name, n in chosen.items()}
    call = draws.picked(ChosenPick({**like(draws, form), **sizes, **chosen, **more}, turn))
    numbers = itertools.count()
    return tuple(_in_layout(arg, next(numbers), chosen) if isinstance(arg, Input) else arg for arg in call)


def _in_layout(spec: Input, number: int, chosen: Mapping[str, int]) -> Input:
    if chosen.keys().isdisjoint((f"stride {number} 0", f"offset {number}")):
        return spec  # one object may be two arguments
    stride = tuple(chosen.get(f"stride {number} {axis}", step) for axis, step in enumerate(spec.stride))
    return replace(spec, stride=stride, offset=chosen.get(f"offset {number}", spec.offset))
