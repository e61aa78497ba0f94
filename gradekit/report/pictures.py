"""What the pictures of pages draw: pure functions of details of checks, in elements of tensors and in values.

pages/pictures.html makes pixels of them, but for logarithms, which a template cannot compute.
"""

import base64
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from gradekit.report import templates
from gradekit.report.speed_sentences import SIDES, ceiling, si
from gradekit.report.text import counted, for_html

# --- a result ---------------------------------------------------------------------------------------------------------

WIDE, HIGH = 480.0, 220.0  # the largest map, in pixels

COLOURS = 6
NOBODY = -1


def wrong(details: Mapping[str, Any]) -> dict[str, Any] | None:
    """Which part of the result is wrong, over its last two dimensions; None where the record does not say.
    `details.along` has each dimension's size, and the first and last wrong index."""
    along = details.get("along")
    if not isinstance(along, list) or not along or not details.get("wrong"):
        return None
    first = (details.get("first") or {}).get("index") or [0]
    spans = " × ".join(f"{each['first']} to {each['last']} of {each['of']}" for each in along)
    return {
        "along": [{"of": 1, "first": 0, "last": 0}, *along][-2:], "at": [0, *first][-2:],
        "caption": f"The result: {wrong_elements(details)}, at indices {spans}. The dot is the first.",
    }  # fmt: skip


def wrong_image(details: Mapping[str, Any]) -> str:
    """The same as an image within HTML, its caption as text, for a page without styles; "" where there is none."""
    picture = wrong(details)
    if picture is None:
        return ""
    svg = templates.environment().get_template("pictures.html").make_module().wrong_svg(picture, styled=True)  # type: ignore[attr-defined]
    data, caption = base64.b64encode(str(svg).encode()).decode("ascii"), for_html(picture["caption"])
    return f'<p><img alt="{caption}" src="data:image/svg+xml;base64,{data}"/></p><p>{caption}</p>'


def wrong_elements(details: Mapping[str, Any]) -> str:
    """{"wrong": 1, "total": 33} -> "1 of 33 elements is wrong"."""
    of = counted(details["total"], "element") if "total" in details else "? elements"
    return f"{details['wrong']} of {of} {'is' if details['wrong'] == 1 else 'are'} wrong"


def tiles(found: Any, details: Mapping[str, Any]) -> dict[str, Any] | None:
    """The map of a result in `details.tiles` of a check: what each program wrote, and what is wrong."""
    if not isinstance(found, Mapping):
        return None
    rows, columns = found["rows"], found["columns"]
    owners, wrong = _cells(found["owners"]), _cells(found["wrong"])
    return {
        "rows": rows, "columns": columns, "cell": min(WIDE / columns, HIGH / rows, 22.0),
        "parts": list(_boxes(owners, rows, columns)), "wrong": [b for b in _boxes(wrong, rows, columns) if b["of"]],
        "names": list(_names(owners, columns, found["grid"])), "caption": _caption(found, owners, details),
        "shared": [(str(e["index"]), *(str(tuple(program)) for program in e["programs"])) for e in found["shared"]],
    }  # fmt: skip


def _cells(runs: Iterable[Sequence[int]]) -> list[int]:
    return [value for value, count in runs for _ in range(count)]


def _boxes(cells: Sequence[int], rows: int, columns: int) -> Iterator[dict[str, Any]]:
    """Rectangles of equal cells: runs along a row, which go on below where the next row has the same."""
    open_: dict[tuple[int, int, int], list[int]] = {}
    for row in range(rows + 1):
        here = set(_row_runs(cells[row * columns : (row + 1) * columns])) if row < rows else set()
        for key in [key for key in open_ if key not in here]:
            (y, h), (x, w, value) = open_.pop(key), key
            colour = "nobody" if value == NOBODY else f"owner{value % COLOURS}"
            yield {"of": value, "colour": colour, "x": x, "y": y, "w": w, "h": h}
        for key in here:
            open_.setdefault(key, [row, 0])[1] += 1


def _row_runs(row: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    start = 0
    for place in range(1, len(row) + 1):
        if place == len(row) or row[place] != row[start]:
            yield start, place - start, row[start]
            start = place


def _names(owners: Sequence[int], columns: int, grid: Sequence[int]) -> Iterator[dict[str, Any]]:
    """The ids of programs, in the middle of their parts, for those whose parts are nearly rectangles."""
    places: dict[int, list[int]] = {}
    for place, owner in enumerate(owners):
        places.setdefault(owner, []).append(place)
    for owner, mine in places.items():
        across, down = [place % columns for place in mine], [place // columns for place in mine]
        w, h = max(across) - min(across) + 1, max(down) - min(down) + 1
        if owner != NOBODY and len(mine) >= 0.9 * w * h:
            yield {"x": min(across) + w / 2, "y": min(down) + h / 2, "w": w, "h": h, "text": _short(owner, grid)}


def _short(owner: int, grid: Sequence[int]) -> str:
    parts = [owner % grid[0], owner // grid[0] % grid[1], owner // (grid[0] * grid[1])]
    while len(parts) > 1 and grid[len(parts) - 1] == 1:
        parts.pop()
    return ",".join(map(str, parts))


def _caption(found: Mapping[str, Any], owners: Sequence[int], details: Mapping[str, Any]) -> str:
    said = (
        f"The result, {found['shape']}: each part has the colour of the program that wrote it. "
        f"The grid is {tuple(found['grid'])}."
    )
    if details.get("wrong"):
        said += f" Framed: {wrong_elements(details)}."
        first = (details.get("first") or {}).get("index")
        said += f" The first is {first}." if first else ""
    if NOBODY in owners:
        said += " Dashed: written by nobody."
    return said


# --- memory -----------------------------------------------------------------------------------------------------------

AROUND = 8  # elements that are drawn on either side of a tensor's end


def outside(findings: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """For each access out of bounds: the tensor's end, and the elements beside it that were touched."""
    kinds = ("out-of-bounds-load", "out-of-bounds-store")
    return [drawn for each in findings if each.get("cause") in kinds and (drawn := _outside(each))]


def _outside(finding: Mapping[str, Any]) -> dict[str, Any] | None:
    size, touched = finding.get("size"), [e[0] for e in finding.get("elements", ()) if len(e) == 1]
    beyond = [each for each in touched if not 0 <= each < (size or 0)]
    if not size or not beyond:
        return None
    first = max(size - AROUND, 0) if beyond[0] >= size else max(beyond[0], -AROUND)
    last = first + 2 * AROUND
    name = finding.get("tensor") or "the tensor"
    verb = "loaded" if finding["cause"].endswith("load") else "stored"
    programs = finding.get("programs") or []
    by = f", first by program {tuple(programs[0])}" if programs else ""
    count = finding.get("count", len(beyond))
    has = f"elements 0 to {size - 1}" if size > 1 else "only element 0"
    caption = f"The memory of {name} has {has}. {count} outside of it {'is' if count == 1 else 'are'} {verb}{by}."
    drawn = sum(first <= each < last for each in beyond)
    if not drawn:
        caption += f" The first of them is {beyond[0]}, further out than is drawn."
    else:
        caption += f" Red: the first {drawn} of them." if drawn < count else " Red: outside of it."
    return {"first": first, "last": last, "size": size, "beyond": beyond, "caption": caption}


# --- speed ------------------------------------------------------------------------------------------------------------


def speed(measured: Mapping[str, Any]) -> dict[str, Any]:
    """The ratios with their intervals, and the thresholds that were asked for."""
    asked = {verdict["side"]: float(verdict["at_least"]) for verdict in measured["verdicts"]}
    ratios = measured["ratios"].items()
    rows = [{"name": f"beside {SIDES[side]}", **ratio, "asked": asked.get(side)} for side, ratio in ratios]
    most = 1.15 * max([1.0, *(float(row["high"]) for row in rows), *asked.values()])
    caption = "Times as fast, with the interval of the measurement; a dashed line is what was asked for."
    return {"rows": rows, "most": most, "ticks": round_ticks(most), "caption": caption}


def plot(checks: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Microseconds of one call over the bytes that it has to move, both logarithmic; None where nothing was timed."""
    timed = [check["details"]["speed"] for check in checks if "speed" in check["details"]]
    rows = sorted((_timed(each) for each in timed if each.get("roofline")), key=lambda row: row["bytes"])
    if not rows:
        return None
    times = [value for row in rows for value in (*row["times"].values(), *row["interval"])]
    low, high = min(times) / 1.3, max(times) * 1.3
    across = _scale(rows[0]["bytes"] / 1.5, rows[-1]["bytes"] * 1.5, 58.0, 545.0)
    up = _scale(low, high, 190.0, 16.0)
    return {
        "lines": [_line(side, rows, across, up) for side in SIDES if any(side in row["times"] for row in rows)],
        "intervals": [(across(row["bytes"]), *map(up, row["interval"])) for row in rows],
        "sizes": [(across(row["bytes"]), si(row["bytes"], "B")) for row in rows],
        "ticks": [(up(value), f"{value:.3g}") for value in _log_ticks(low, high)],
        "rows": [{"size": row["size"], "cells": [_cell(row, side) for side in SIDES]} for row in rows],
        "heads": list(SIDES.values()), "card": timed[0].get("card", ""),
        "caption": "Microseconds of one call over the bytes that it has to move; bars are the intervals of the "
                   "submission.",
    }  # fmt: skip


def _timed(speed: Mapping[str, Any]) -> dict[str, Any]:
    times, least = speed["microseconds"], ceiling(speed["roofline"])
    student = float(times["student"])
    known = {side: float(times[side]) for side in ("student", "eager", "compiled") if times.get(side)}
    known |= {"ceiling": least} if least else {}
    # the submission's time as the widest of the ratios' intervals has it
    ends = [student, *(student * r["value"] / r[end] for r in speed["ratios"].values() if r["low"] > 0
                       for end in ("low", "high"))]  # fmt: skip
    least_bytes, interval = max(speed["roofline"]["bytes_least"], 1), (min(ends), max(ends))
    return {"bytes": least_bytes, "times": known, "interval": interval, "size": speed["size"]}


def _scale(low: float, high: float, start: float, end: float) -> Any:
    span = math.log(high / low)
    return lambda value: round(start + (end - start) * math.log(value / low) / span, 1)


def _line(side: str, rows: Sequence[Mapping[str, Any]], across: Any, up: Any) -> dict[str, Any]:
    points = [(across(row["bytes"]), up(row["times"][side])) for row in rows if side in row["times"]]
    return {"side": side, "name": SIDES[side], "points": points}


def _log_ticks(low: float, high: float) -> list[float]:
    tens = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [step * 10.0**ten for ten in tens for step in (1, 2, 5) if low <= step * 10.0**ten <= high]


def _cell(row: Mapping[str, Any], side: str) -> str:
    if side not in row["times"]:
        return ""
    text = f"{row['times'][side]:.4g}"
    low, high = row["interval"]
    return f"{text} ({low:.4g} to {high:.4g})" if side == "student" and high > low else text


# --- a class ----------------------------------------------------------------------------------------------------------

BINS = 10
SPREAD = 43  # bars that the axis of a spread has room for


def histogram(shares: Sequence[float]) -> dict[str, Any] | None:
    """How many of the shares, 0 to 1, lie in each of the BINS; None where there are none."""
    if not shares:
        return None
    bins, middle, mean = binned(shares), statistics.median(shares) * 100, statistics.mean(shares) * 100
    caption = f"Median {middle:.0f} %, mean {mean:.0f} % of the points that were measured."
    return {"counts": [bins[number] for number in range(BINS)], "caption": caption}


def binned(shares: Sequence[float]) -> Counter[int]:
    """How many of the shares, 0 to 1, lie in each of the BINS; 1 lies in the last."""
    return Counter(min(int(share * BINS), BINS - 1) for share in shares)


def spread(title: str, ratios: Sequence[float], asked: float) -> dict[str, Any]:
    """How many reach each ratio, from 0 to `most` in SPREAD steps, and what was asked for."""
    most, reached = 1.1 * max([asked, *ratios]), sum(ratio >= asked for ratio in ratios)
    return {
        "title": title, "most": most, "ticks": round_ticks(most), "asked": asked, "steps": SPREAD,
        "counts": sorted(Counter(int(SPREAD * ratio / most) for ratio in ratios).items()),
        "caption": f"Times as fast as torch: {reached} of {len(ratios)} reach {asked:g}, the dashed line.",
    }  # fmt: skip


def round_ticks(most: float) -> list[float]:
    """Round numbers from 0 to at most `most`, three to six of them: multiples of 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(most))
    step = next(unit * power for unit in (0.2, 0.5, 1, 2) if most / (unit * power) <= 5)
    return [round(step * number, 10) for number in range(int(most / step) + 1)]
