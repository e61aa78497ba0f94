"""The value of an operation for one program as few characters: a heat strip, and numbers where they are few."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from gradekit.judge.result_map import evenly

MOST_ROWS, MOST_COLUMNS = 24, 48
"""Cells of the strip of a tile; of a larger one, rows and columns are left out at even distances."""

LONGEST_ROW = 128
"""Cells of the strip of a tile of one dimension."""

MOST_NUMBERS = 512
"""Cells of which the numbers are kept, too: a page shows them in the cells where they fit, else under the pointer."""

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
        found["number"] = shown(flat[0])
        return found
    cells = value.reshape(-1, shape[-1]) if shape else value.view(1, 1)
    rows, columns = chosen_cells(cells.shape)
    cells = cells[rows][:, columns]
    found |= {"rows": len(rows), "columns": len(columns), "levels": levels(cells)}
    if cells.numel() < value.numel():
        found |= {"at_rows": rows.tolist(), "at_columns": columns.tolist()}
    if cells.numel() <= MOST_NUMBERS and value.dtype is not torch.bool:
        found["numbers"] = [shown(each) for each in cells.reshape(-1)]
    return found


def chosen_cells(shape: torch.Size) -> tuple[Tensor, Tensor]:
    """Which rows and which columns of a tile are drawn: all, or so many at even
    distances, the first and last among them."""
    rows, columns = shape
    most = LONGEST_ROW if rows == 1 else MOST_COLUMNS
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


def shown(element: Tensor) -> str:
    """One element in few digits."""
    number = element.item()
    return f"{number:.4g}" if isinstance(number, float) else str(number)
