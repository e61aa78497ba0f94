"""Integers in tensors at which a kernel's comparisons change: lengths, positions and labels meet ends of tiles, as
sizes are."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from gradekit.domain import Tensor, evaluate
from gradekit.engine.ttir_locations import line_of
from gradekit.inputs.draws import Draws, shape_of
from gradekit.inputs.value_kinds import CHOSEN
from gradekit.unseen import Limit
from gradekit.unseen.further import FurtherCall, Purpose, made, rank_of
from gradekit.unseen.host_branches import Path
from gradekit.unseen.kernel_branches import KernelText, corners, edges
from gradekit.unseen.scope import CallScope, sizes_alone
from gradekit.unseen.search import Calls

_OF_NUMBERS = re.compile(r"arith\.(cmpi|(min|max)[su]i)$|scf\.for$")
_OF_DTYPE = {"int32": "i32", "int64": "i64"}


def at_edges(draws: Draws, paths: Sequence[Path], texts: Sequence[KernelText]) -> Iterator[FurtherCall]:
    """Calls with values at which comparisons change, for each tensor of integers that may hold any of its range: each
    comparison with what is loaded goes both ways, and meets the last with which it is true. They are like the call with
    the widest range, and have the check's kinds of values in turn."""
    for tensor in _free(draws) if paths else ():
        ranges = ((_range(draws, tensor, path), path) for path in paths)
        among, path = max(ranges, key=lambda one: (len(one[0]), -one[1].form.elements))
        told = _turning(path, texts, _OF_DTYPE[tensor.dtype], among)
        scope = CallScope(sizes_alone(draws), rank_of(draws, path.form), True)
        sizes = _with_room(scope, scope.sizes_of(path.form), tensor, len(told))
        pool, step = [*told], max(math.prod(shape_of(tensor, sizes, scope.rank)), 1)
        parts = [pool[first : first + step] for first in range(0, len(pool), step)]
        for turn in range(Limit.LOADING if parts else 0):
            some = parts[turn % len(parts)]
            kinds = {f"values {names}": options[(turn + turn // len(parts)) % len(options)]
                     for names, options in draws.values}  # fmt: skip
            kinds[f"values {tensor.name}"] = f"{CHOSEN}:cells:1:" + ";".join(map(str, some))
            why = f"{tensor.name} has values at which a comparison in the kernel changes"
            yield FurtherCall(made(draws, path.form, sizes, turn, kinds), why, told[some[0]], Purpose.BESIDE)


def _range(draws: Draws, tensor: Tensor, path: Path) -> torch.Tensor:
    """The numbers that the tensor may hold in the path's call, ascending."""
    sizes = CallScope(sizes_alone(draws), rank_of(draws, path.form), True).sizes_of(path.form)
    least, most = (int(evaluate(end, sizes)) for end in tensor.range or ("0", "-1"))
    return torch.arange(least, min(most, least + Limit.RANGE) + 1)


def _with_room(scope: CallScope, sizes: dict[str, int], tensor: Tensor, count: int) -> dict[str, int]:
    """These sizes, that of the tensor so large that it holds so many numbers, or as large a part of them as may be."""
    name = next((name for name in tensor.shape if name in scope.sizes), "")
    for size in (scope.nearest(name, count >> part) for part in range(count.bit_length()) if name):
        columns = {one: torch.tensor([n]) for one, n in {**sizes, name: size}.items()}
        if size > sizes.get(name, 0) and bool(scope.allows(columns)):
            return {**sizes, name: size}
    return sizes


def _free(draws: Draws) -> Iterator[Tensor]:
    """The tensors of whole numbers whose values no other tensor's hang together with."""
    kinds = {names: [*map(str, options)] for names, options in draws.values}
    for tensor in draws.entry.tensors:
        others = [kind for names, options in kinds.items() if names != tensor.name for kind in options]
        is_free = tensor.name in kinds and not any("{seed}" in kind for kind in others)
        if is_free and tensor.range and not tensor.ascending and tensor.dtype in _OF_DTYPE:
            yield tensor


def _turning(path: Path, texts: Sequence[KernelText], dtype: str, among: torch.Tensor) -> dict[int, int | None]:
    """The numbers, each with a line that turns there: those of each comparison in turn."""
    found: list[list[tuple[int, int | None]]] = []
    for kernel, grid, names in Calls.of(path, [path.form]).launches:
        ends, known = corners(grid, names), dict[Hashable, Any]()  # and the second program's
        ends += [replace(end, program=(1, 1, 1)) for end in ends[len(ends) // 2 :]]
        places = [replace(end, loaded={dtype: among}, known=known) for end in ends]
        for text in [one for one in texts if one.name == kernel][-Limit.LOOPS :]:
            for op in (op for op in text.ops if _OF_NUMBERS.match(op.name)):
                told = line_of(op.location, text.path)
                found.append([(n, told) for place in places for n in edges(text, op.number, place, among)])
    first = dict[int, int | None]()
    for n, line in (one for turn in itertools.zip_longest(*found) for one in turn if one is not None):
        first.setdefault(n, line)
    return dict(itertools.islice(first.items(), Limit.LOADED))
