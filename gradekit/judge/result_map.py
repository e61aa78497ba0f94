"""A result as a map for the report: which program wrote which element, and which elements are wrong."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from gradekit.engine.memory import strided
from gradekit.engine.observer import NOBODY, Owners, coordinates
from gradekit.findings import Finding
from gradekit.judge.comparison import Comparison
from gradekit.program import Program, View

MOST_ROWS, MOST_COLUMNS = 24, 48  # cells of a map; of a larger result, rows and columns are left out at even distances

MOST_SHARED = 4


def evenly(count: int, most: int) -> Tensor:
    """0 to count-1, or at most so many of them at even distances, the first and the last among them; int64, 1-D."""
    if count <= most:
        return torch.arange(count)
    return torch.linspace(0, count - 1, most, dtype=torch.float64).round().to(torch.int64)


def result_map(
    program: Program, owners: Owners, comparison: Comparison | None, findings: Sequence[Finding]
) -> dict[str, Any]:
    """The map of the first result that is wrong, or else of the first that a program wrote; empty where there is none.
    Owners and wrong cells are runs of [what, how many cells], row by row; `shared` has elements that two programs
    wrote."""
    views = [result for result in program.results if isinstance(result, View) and result.numel]
    fitting = [view for view in views if comparison is not None and view.shape == tuple(comparison.wrong.shape)]
    view = next((view for view in [*fitting, *views] if view.storage in owners.program), None)
    if view is None or (comparison is not None and view not in fitting):
        return {}
    owner = owners.program[view.storage]
    if view.reach > owner.numel() or min(view.stride, default=1) < 0:
        return {}
    grid = owners.grids[int(owners.launches[view.storage].max())]
    seen = [
        strided(each[view.storage], view.shape, view.stride, view.offset) for each in (owners.program, owners.shared)
    ]
    wrong = comparison.wrong if comparison is not None else _found(findings, view)
    columns = view.shape[-1] if view.shape else 1
    owned, marked = seen[0].reshape(-1, columns), wrong.reshape(-1, columns)
    rows, across = evenly(owned.shape[0], MOST_ROWS), evenly(columns, MOST_COLUMNS)
    return {
        "shape": list(view.shape), "grid": list(grid), "rows": len(rows), "columns": len(across),
        "owners": _runs(owned[rows][:, across]), "wrong": _runs(marked[rows][:, across].long()),
        "shared": _shared(seen[0], seen[1], grid),
    }  # fmt: skip


def _found(findings: Sequence[Finding], view: View) -> Tensor:
    """The elements of the result that findings name."""
    marked = torch.zeros(view.shape, dtype=torch.bool)
    for finding in findings:
        for element in finding.elements if finding.tensor == "the result" else ():
            if len(element) == len(view.shape) and all(0 <= i < n for i, n in zip(element, view.shape, strict=True)):
                marked[element] = True
    return marked


def _runs(cells: Tensor) -> list[list[int]]:
    values, counts = cells.reshape(-1).unique_consecutive(return_counts=True)
    return [[value, count] for value, count in zip(values.tolist(), counts.tolist(), strict=True)]


def _shared(last: Tensor, before: Tensor, grid: Sequence[int]) -> list[dict[str, Any]]:
    places = (before != NOBODY).nonzero()[:MOST_SHARED].tolist()
    return [
        {"index": place, "programs": [list(coordinates(int(each[tuple(place)]), grid)) for each in (before, last)]}
        for place in places
    ]
