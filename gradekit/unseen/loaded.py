"""Integers in tensors at which a kernel's comparisons change: lengths, positions and labels meet ends of tiles, as
sizes are; and steps between those that ascend, such as lengths of rows that lie one after the other."""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from gradekit.domain import Tensor, evaluate, names_in
from gradekit.engine.ttir_locations import line_of
from gradekit.inputs.draws import Draws, shape_of
from gradekit.inputs.value_kinds import CHOSEN
from gradekit.unseen import Limit
from gradekit.unseen.further import FurtherCall, Purpose, fits, made, rank_of
from gradekit.unseen.host_branches import Path, TracedForm
from gradekit.unseen.kernel_branches import KernelText, corners, edges
from gradekit.unseen.scope import CallScope, sizes_alone
from gradekit.unseen.search import Calls

_OF_NUMBERS = re.compile(r"arith\.(cmpi|(min|max)[su]i)$|scf\.for$")


def at_edges(
    draws: Draws, forms: Iterable[TracedForm], path_of: Callable[[TracedForm], Path | None],
    texts_of: Callable[[TracedForm], Sequence[KernelText]],
) -> Iterator[FurtherCall]:  # fmt: skip
    """Calls with values at which comparisons change, for each tensor of integers that may hold any of its range: each
    comparison with what is loaded goes both ways, and meets the last with which it is true. They are like the one of
    `forms` that holds most of these numbers, and each part of them meets each of the check's kinds of values, in the
    layouts in turn."""
    kinds = max((len(options) for _, options in draws.values), default=1)
    for tensor in _free(draws):
        each: dict[Hashable, _EdgeCall] = {}
        for form in forms:
            if fits(draws, form) and form.elements and (path := path_of(form)) is not None:
                one = _EdgeCall(draws, tensor, form, path, texts_of)
                each.setdefault((path.way, len(one.among), one.room), one)
        if not each:
            continue
        calls = Limit.LOADING // kinds
        one = max(each.values(), key=lambda one: (min(len(one.told), one.room * calls), len(one.told)))
        parts = [[*one.told][first : first + one.room] for first in range(0, len(one.told), one.room)]
        for turn in range(min(len(parts) * kinds, Limit.LOADING)):
            some = parts[turn % len(parts)]
            picks = draws.in_turn(turn % len(parts) + turn // len(parts), "values ", "layout ")
            text = ";".join(map(str, some))
            picks |= {tensor.steps[0]: text} if tensor.steps else {f"values {tensor.name}": f"{CHOSEN}:cells:1:{text}"}
            why = f"{tensor.name} has values at which a comparison in the kernel changes"
            yield FurtherCall(made(draws, one.form, one.sizes, turn, picks), why, one.told[some[0]], Purpose.BESIDE)


@dataclass
class _EdgeCall:
    """A call like `form`, on its `path`: the numbers that the tensor may hold, `among`, and how many it has `room` for;
    those at which comparisons turn are `told`, each with a line."""

    draws: Draws
    tensor: Tensor
    form: TracedForm
    path: Path
    texts_of: Callable[[TracedForm], Sequence[KernelText]]

    def __post_init__(self) -> None:
        scope = CallScope(sizes_alone(self.draws), rank_of(self.draws, self.form), True)
        own, steps = scope.sizes_of(self.form), self.tensor.steps[1:]
        for name in scope.sizes if steps else ():
            own[name] = scope.nearest(name, Limit.FAR if name in steps else Limit.USUAL)
        ends = ("0", *steps) if steps else self.tensor.range or ("0", "-1")
        least, most = (int(evaluate(end, own)) for end in ends)
        self.among = torch.arange(least, min(most, least + Limit.RANGE) + 1)
        self.sizes = _with_room(scope, own, self.tensor, Limit.LOADED)
        self.room = max(math.prod(shape_of(self.tensor, self.sizes, scope.rank)) - len(steps), 1)

    @functools.cached_property
    def told(self) -> dict[int, int | None]:
        """Those of each comparison in turn."""
        loaded, number = {self.tensor.dtype.replace("int", "i"): self.among}, self.draws.tensors.index(self.tensor)
        apart = self.form.views[number].stride[0] if self.tensor.steps else 0
        found: list[list[tuple[int, int | None]]] = []
        for kernel, grid, names in Calls.of(self.path, [self.form]).launches:
            ends, known = corners(grid, names), dict[Hashable, Any]()  # and the second program's
            ends += [replace(end, program=(1, 1, 1)) for end in ends[len(ends) // 2 :]]
            places = [replace(end, loaded=loaded, apart=apart, known=known) for end in ends]
            for text in [one for one in self.texts_of(self.form) if one.name == kernel][: Limit.LOOPS]:
                for op in (op for op in text.ops if _OF_NUMBERS.match(op.name)):
                    told = line_of(op.location, text.path)
                    found.append([(n, told) for place in places for n in edges(text, op.number, place, self.among)])
        first = dict[int, int | None]()
        for n, line in (one for turn in itertools.zip_longest(*found) for one in turn if one is not None):
            first.setdefault(n, line)
        return dict(itertools.islice(first.items(), Limit.LOADED))


def _with_room(scope: CallScope, sizes: dict[str, int], tensor: Tensor, count: int) -> dict[str, int]:
    """These sizes, that of the tensor so large that it holds so many numbers, or as large a part of them as may be."""
    name = next((name for name in scope.sizes for part in tensor.shape if name in names_in(part)), "")
    for size in (scope.nearest(name, count >> part) for part in range(count.bit_length()) if name):
        if size > sizes.get(name, 0) and scope.has({**sizes, name: size}):
            return {**sizes, name: size}
    return sizes


def _free(draws: Draws) -> Iterator[Tensor]:
    """The tensors of whole numbers whose values no other tensor's hang together with, or that say how these do."""
    kinds = {names: [*map(str, options)] for names, options in draws.values}
    for tensor in draws.entry.tensors:
        others = [kind for names, options in kinds.items() if names != tensor.name for kind in options]
        is_free = tensor.name in kinds and not any("{seed}" in kind for kind in others)
        if (is_free and tensor.range and not tensor.ascending or tensor.steps) and tensor.dtype in ("int32", "int64"):
            yield tensor
