"""The geometry of pictures of a result and of memory: who owns what, what is wrong,
and what lies outside of a tensor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from gradekit.report.text import counted, one_line

WIDE, HIGH = 480.0, 220.0
"""The largest map, in pixels."""

COLOURS = 6
LEAST_NAMED = 34.0
"""How wide a program's part must be for its id to stand in it."""

AROUND = 8
"""Elements that are drawn on either side of a tensor's end."""

NOBODY = -1
_OUTSIDE = ("out-of-bounds-load", "out-of-bounds-store")


def tiles(found: Any, details: Mapping[str, Any]) -> dict[str, Any] | None:
    """The map of a result in `details.tiles` of a check: what each program wrote, and what is wrong."""
    if not isinstance(found, Mapping):
        return None
    rows, columns = found["rows"], found["columns"]
    cell = min(WIDE / columns, HIGH / rows, 22.0)
    owners, wrong = _cells(found["owners"]), _cells(found["wrong"])
    grid = found["grid"]
    return {
        "width": round(cell * columns, 1), "height": round(cell * rows, 1),
        "parts": list(_boxes(owners, rows, columns, cell)),
        "wrong": [b for b in _boxes(wrong, rows, columns, cell) if b["of"]],
        "names": list(_names(owners, columns, cell, grid)), "shared": [_pair(each) for each in found["shared"]],
        "caption": _caption(found, owners, details),
    }  # fmt: skip


def _cells(runs: Iterable[Sequence[int]]) -> list[int]:
    return [value for value, count in runs for _ in range(count)]


def _boxes(cells: Sequence[int], rows: int, columns: int, cell: float) -> Iterator[dict[str, Any]]:
    """Rectangles of equal cells: runs along a row, which go on below where the next row has the same."""
    open_: dict[tuple[int, int, int], list[float]] = {}
    for row in range(rows + 1):
        here = set(_row_runs(cells[row * columns : (row + 1) * columns])) if row < rows else set()
        for key in [key for key in open_ if key not in here]:
            first, height = open_.pop(key)
            start, length, value = key
            yield {
                "of": value, "colour": "nobody" if value == NOBODY else f"owner{value % COLOURS}",
                "x": round(start * cell, 1), "y": round(first * cell, 1),
                "w": round(length * cell, 1), "h": round(height * cell, 1),
            }  # fmt: skip
        for key in here:
            open_.setdefault(key, [row, 0])[1] += 1


def _row_runs(row: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    start = 0
    for place in range(1, len(row) + 1):
        if place == len(row) or row[place] != row[start]:
            yield start, place - start, row[start]
            start = place


def _names(owners: Sequence[int], columns: int, cell: float, grid: Sequence[int]) -> Iterator[dict[str, Any]]:
    """The ids of programs, in the middle of their parts where there is room."""
    places: dict[int, list[int]] = {}
    for place, owner in enumerate(owners):
        places.setdefault(owner, []).append(place)
    for owner, mine in places.items():
        across, down = [place % columns for place in mine], [place // columns for place in mine]
        width, height = (max(across) - min(across) + 1) * cell, (max(down) - min(down) + 1) * cell
        whole = len(mine) * cell * cell >= 0.9 * width * height
        if owner != NOBODY and width >= LEAST_NAMED and height >= 14 and whole:
            yield {
                "x": round((min(across) + max(across) + 1) / 2 * cell, 1),
                "y": round((min(down) + max(down) + 1) / 2 * cell + 4, 1),
                "text": _short(owner, grid),
            }  # fmt: skip


def _short(owner: int, grid: Sequence[int]) -> str:
    parts = [owner % grid[0], owner // grid[0] % grid[1], owner // (grid[0] * grid[1])]
    while len(parts) > 1 and grid[len(parts) - 1] == 1:
        parts.pop()
    return ",".join(map(str, parts))


def _pair(shared: Mapping[str, Any]) -> dict[str, str]:
    one, other = (str(tuple(program)) for program in shared["programs"])
    return {"element": str(shared["index"]), "one": one, "other": other}


def _caption(found: Mapping[str, Any], owners: Sequence[int], details: Mapping[str, Any]) -> str:
    programs = len(set(owners) - {NOBODY})
    said = (
        f"The result, {found['shape']}, by the programs that wrote it: {programs} of a grid of {tuple(found['grid'])} "
        f"{'is' if programs == 1 else 'are'} seen here."
    )
    if details.get("wrong"):
        said += f" Framed: {wrong_elements(details)}."
        first = (details.get("first") or {}).get("index")
        said += f" The first is {first}." if first else ""
    if NOBODY in owners:
        said += " Dashed: written by nobody."
    return said


def wrong_elements(details: Mapping[str, Any]) -> str:
    """{"wrong": 1, "total": 33} -> "1 of 33 elements is wrong"."""
    of = counted(details["total"], "element") if "total" in details else "? elements"
    return f"{details['wrong']} of {of} {'is' if details['wrong'] == 1 else 'are'} wrong"


def outside(findings: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """For each access out of bounds: the tensor's end, the elements beside it that
    were touched, and by which program."""
    return [drawn for each in findings if each.get("cause") in _OUTSIDE and (drawn := _outside(each))]


def _outside(finding: Mapping[str, Any]) -> dict[str, Any] | None:
    size, touched = finding.get("size"), [e[0] for e in finding.get("elements", ()) if len(e) == 1]
    beyond = [each for each in touched if not 0 <= each < (size or 0)]
    if not size or not beyond:
        return None
    above = beyond[0] >= size
    first = max(size - AROUND, 0) if above else max(beyond[0], -AROUND)
    last = first + 2 * AROUND
    cells = [
        {
            "x": 26 * (at - first),
            "number": at,
            "kind": "out" if at in beyond else "tensor" if 0 <= at < size else "beside",
        }
        for at in range(first, last)
    ]
    name = one_line(str(finding.get("tensor", ""))) or "the tensor"
    verb = "loaded" if finding["cause"].endswith("load") else "stored"
    programs = finding.get("programs") or []
    by = f", first by program {tuple(programs[0])}" if programs else ""
    count = finding.get("count", len(beyond))
    shown = (
        ""
        if all(first <= each < last for each in beyond[:1])
        else f" The first of them is {beyond[0]}, further out than is drawn."
    )
    caption = (
        f"The memory of {name} has {counted(size, 'element')}{f', 0 to {size - 1}' if size > 1 else ', 0'}. "
        f"{count} outside of it {'is' if count == 1 else 'are'} {verb}{by} (red).{shown}"
    )
    return {"cells": cells, "width": 26 * len(cells), "caption": caption}
