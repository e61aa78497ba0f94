"""Tensors as a page draws them: in rows and columns, with the elements that an access touches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gradekit.engine.observer import TouchedElements
from gradekit.program import ITEMSIZE, Program, View

MOST_RUNS = 512
"""Rows of touched elements that are drawn one by one; of more, the smallest box around them is."""


@dataclass(frozen=True)
class Drawn:
    """A storage as a tensor: what the student calls it, and the view of it that is drawn."""

    name: str
    view: View

    def as_data(self) -> dict[str, Any]:
        """Name, dtype and shape; all dimensions but the last are rows."""
        shape = self.view.shape
        columns = shape[-1] if shape else 1
        return {
            "name": self.name, "dtype": self.view.dtype, "shape": list(shape),
            "rows": math.prod(shape[:-1]), "columns": columns,
        }  # fmt: skip

    def flat(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Elements of the storage (int64, 1-D) as places in the tensor, row-major, and which of them it has at all."""
        rest, place = positions - self.view.offset, torch.zeros_like(positions)
        weights = [math.prod(self.view.shape[axis + 1 :]) for axis in range(len(self.view.shape))]
        inside = rest >= 0
        for axis in sorted(range(len(self.view.shape)), key=lambda a: -self.view.stride[a]):
            size, stride = self.view.shape[axis], self.view.stride[axis]
            if stride <= 0 or size <= 1:
                continue
            index = torch.div(rest, stride, rounding_mode="floor")
            inside &= (index >= 0) & (index < size)
            rest = rest - index * stride
            place += index * weights[axis]
        return place, inside & (rest == 0) & (0 not in self.view.shape)


class Tensors:
    """The tensors of one run, by storage, in the order in which the page names them."""

    def __init__(self, program: Program) -> None:
        results = [result for result in program.results if isinstance(result, View)]
        self._views = {view.storage: view for view in (*results, *program.inputs)}
        self.drawn: list[Drawn] = []
        self._places: dict[int, int] = {}

    def number(self, touched: TouchedElements) -> int | None:
        """The number of the tensor that was touched; None where the access is to no storage."""
        storage = touched.storage
        if storage is None:
            return None
        if storage.id not in self._places:
            dtype = {1: "uint8", 2: "float16", 4: "float32", 8: "int64"}[touched.itemsize]
            buffer = View(storage.id, dtype, (storage.count(touched.itemsize),), (1,))
            self._places[storage.id] = len(self.drawn)
            self.drawn.append(Drawn(storage.name, self._views.get(storage.id, buffer)))
        return self._places[storage.id]


def access_data(touched: TouchedElements, program: int, drawn: Drawn) -> dict[str, Any]:
    """Which elements of a tensor the `program`-th program of the frame touches: runs of [first, how many] in row-major
    order, how many lanes are masked, and how many are outside of the memory of the tensor."""
    assert touched.storage is not None
    index, active = touched.index[program], touched.active[program]
    chosen = index[active]
    count = touched.storage.count(touched.itemsize)
    before, after = int((chosen < 0).sum()), int((chosen >= count).sum())
    within = chosen[(chosen >= 0) & (chosen < count)]
    if ITEMSIZE[drawn.view.dtype] != touched.itemsize:
        within = within * touched.itemsize // ITEMSIZE[drawn.view.dtype]
    places, inside = drawn.flat(within)
    runs, boxed = _runs(places[inside].unique())
    found: dict[str, Any] = {"lanes": index.numel(), "active": int(active.sum()), "runs": runs}
    found |= {"boxed": True} if boxed else {}
    found |= {"between": int((~inside).sum())} if not bool(inside.all()) else {}
    if before or after:
        worst = chosen[(chosen < 0) | (chosen >= count)]
        found["outside"] = {"before": before, "after": after, "first": int(worst[0]), "size": count}
    return found


def _runs(places: Tensor) -> tuple[list[list[int]], bool]:
    """Sorted places as runs; where there are too many, as one, with True."""
    if not places.numel():
        return [], False
    cuts = (places.diff() != 1).nonzero().view(-1) + 1
    if cuts.numel() >= MOST_RUNS:
        return [[int(places[0]), int(places[-1] - places[0]) + 1]], True
    pieces = places.tensor_split(cuts)
    return [[int(piece[0]), piece.numel()] for piece in pieces], False
