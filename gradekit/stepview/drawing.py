"""What a page draws: tensors in rows and columns, with the elements that an access touches; and the value of an
operation for one program as few characters, a heat strip, and numbers where they are few."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gradekit.engine.explain import Namer
from gradekit.engine.memory import index_in
from gradekit.engine.observer import TouchedElements
from gradekit.judge.compare import show
from gradekit.judge.result_map import MOST_COLUMNS, MOST_ROWS, evenly
from gradekit.program import ITEMSIZE, Program, View
from gradekit.stepview import Limit


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
        index, inside = index_in(self.view, positions)
        weights = [math.prod(self.view.shape[axis + 1 :]) for axis in range(len(index))]
        places = (along * weight for along, weight in zip(index, weights, strict=True))
        return sum(places, torch.zeros_like(positions)), inside


class Tensors:
    """The tensors of one run, by storage, in the order in which the page names them."""

    def __init__(self, program: Program, names: Sequence[str]) -> None:
        self._namer = Namer(program, names)
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
            self.drawn.append(Drawn(self._namer.storage(storage.id), self._namer.views.get(storage.id, buffer)))
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
    if cuts.numel() >= Limit.DRAWN:
        return [[int(places[0]), int(places[-1] - places[0]) + 1]], True
    pieces = places.tensor_split(cuts)
    return [[int(piece[0]), piece.numel()] for piece in pieces], False


# --- values -----------------------------------------------------------------------------------------------------------

LEVELS = "abcdefghijklmnopqrs"
"""Levels from the largest magnitude below zero ("a") over zero ("j") to the largest above it ("s"); beside them "N" is
NaN, "P" and "M" are the infinities, "1" and "0" a boolean."""

MIDDLE = len(LEVELS) // 2


def tile_data(value: Tensor) -> dict[str, Any]:
    """What a page shows of one value: shape, dtype, extremes, how many are NaN or infinite, a strip of levels."""
    shape, flat = list(value.shape), value.reshape(-1)
    found: dict[str, Any] = {"shape": shape, "dtype": str(value.dtype).removeprefix("torch.")}
    if value.dtype is torch.bool:
        found["true"] = int(flat.sum())
    else:
        found |= _extremes(flat)
    if value.numel() == 1:
        found["number"] = show(flat[0], 4)
        return found
    cells = value.reshape(-1, shape[-1]) if shape else value.view(1, 1)
    rows, columns = chosen_cells(cells.shape)
    cells = cells[rows][:, columns]
    found |= {"rows": len(rows), "columns": len(columns), "levels": levels(cells)}
    if cells.numel() < value.numel():
        found |= {"at_rows": rows.tolist(), "at_columns": columns.tolist()}
    if cells.numel() <= Limit.DRAWN and value.dtype is not torch.bool:
        found["numbers"] = [show(each, 4) for each in cells.reshape(-1)]
    return found


def chosen_cells(shape: torch.Size) -> tuple[Tensor, Tensor]:
    """Which rows and which columns of a tile are drawn: all, or so many at even
    distances, the first and last among them."""
    rows, columns = shape
    most = Limit.ROW if rows == 1 else MOST_COLUMNS
    return evenly(rows, MOST_ROWS), evenly(columns, most)


def _extremes(flat: Tensor) -> dict[str, Any]:
    """The smallest and largest finite numbers, and how many are not finite."""
    if not flat.dtype.is_floating_point:
        return {"low": str(int(flat.min())), "high": str(int(flat.max()))} if flat.numel() else {}
    number = flat.double()
    finite = number[number.isfinite()]
    found: dict[str, Any] = {}
    if finite.numel():
        found |= {"low": f"{float(finite.min()):.4g}", "high": f"{float(finite.max()):.4g}"}
    nan, inf = int(number.isnan().sum()), int(number.isinf().sum())
    return found | ({"nan": nan} if nan else {}) | ({"inf": inf} if inf else {})


def levels(cells: Tensor) -> str:
    """One character for each cell, row by row."""
    flat = cells.reshape(-1)
    if flat.dtype is torch.bool:
        return "".join("1" if bit else "0" for bit in flat.tolist())
    number = flat.double()
    finite = number[number.isfinite()]
    most = float(finite.abs().max()) if finite.numel() else 0.0
    return "".join(_level(each, most) for each in number.tolist())


def _level(number: float, most: float) -> str:
    if math.isnan(number):
        return "N"
    if math.isinf(number):
        return "P" if number > 0 else "M"
    if not number:
        return LEVELS[MIDDLE]
    step = math.ceil(abs(number) / most * MIDDLE)
    return LEVELS[MIDDLE + (step if number > 0 else -step)]
