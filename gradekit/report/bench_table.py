"""A sweep over sizes as text: a table, and a plot in characters. Pure functions of the record."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gradekit.report.speed_sentences import duration
from gradekit.report.terminal import Look
from gradekit.report.text import columns, one_line
from gradekit.report.translation import say

SIDES = ("student", "eager", "compiled")
NAMES = {"student": "yours", "eager": "eager torch", "compiled": "torch.compile", "roofline": "roofline"}
COLOURS = {"student": "green", "eager": "yellow", "compiled": "blue", "roofline": None}
_MARKS = {"student": "●", "eager": "○", "compiled": "△", "roofline": "─"}
_ASCII_MARKS = {"student": "*", "eager": "o", "compiled": "x", "roofline": "-"}
_HEIGHT = 16
_TICK = 3
_AXIS = 10
"""Columns of the axis' numbers."""


@dataclass(frozen=True)
class Curves:
    """The rates to draw: `unit` a second, at each of `sizes`, by side ("roofline" among them)."""

    unit: str
    sizes: tuple[int, ...]
    rates: dict[str, tuple[float, ...]]


def curves(record: Mapping[str, Any]) -> Curves | None:
    """Rates of the work that binds at most sizes: bytes or operations a second. None where nothing was measured."""
    rows = [row for row in record["rows"] if not row["error"]]
    if not rows:
        return None
    by_arithmetic = 2 * sum(row["roofline"]["binds"] == "arithmetic" for row in rows) > len(rows)
    what, unit, scale = ("flops", "TFLOP/s", 1e12) if by_arithmetic else ("bytes_least", "GB/s", 1e9)

    def rates(microseconds: Sequence[float]) -> tuple[float, ...]:
        pairs = zip(rows, microseconds, strict=True)
        return tuple(row["roofline"][what] / (1e-6 * time) / scale for row, time in pairs)

    sides = [side for side in SIDES if all(side in row["microseconds"] for row in rows)]
    found = {side: rates([row["microseconds"][side] for row in rows]) for side in sides}
    found["roofline"] = rates([row["roofline_microseconds"] for row in rows])
    return Curves(unit, tuple(row["size"] for row in rows), found)


def render(record: Mapping[str, Any], look: Look | None = None) -> str:
    """The whole sweep, ending in a newline."""
    look = look or Look()
    found = curves(record)
    sections = [_heading(record, look), list(_table(record, look))]
    sections += [list(_plot(found, look))] if found else []
    text = "\n\n".join("\n".join(section) for section in sections) + "\n"
    return text if look.unicode else text.replace("µ", "u").encode("ascii", "replace").decode()


def _heading(record: Mapping[str, Any], look: Look) -> list[str]:
    title = f"{look.paint(one_line(record['assignment']), bold=True)}  {one_line(record['submission']['path'])}"
    card = one_line(str(record["environment"].get("gpu", "a card")))
    return [title, say(f"{one_line(record['entry'])} on {card}, with {record['vary']} as the size that varies")]


# --- the table --------------------------------------------------------------------------------------------------------


def _table(record: Mapping[str, Any], look: Look) -> Iterator[str]:
    heads = [say(head) for head in ("size", *(NAMES[side] for side in SIDES), "to eager", "to compiled", "of roofline")]
    widths = [max(9, columns(head) + 2) for head in heads]
    padded = (" " * (width - columns(head)) + head for head, width in zip(heads, widths, strict=True))
    yield look.paint("".join(padded), dim=True)
    for row in record["rows"]:
        if row["error"]:
            yield from _error(row, widths[0], look)
        else:
            yield "".join(f"{cell:>{width}}" for cell, width in zip(_cells(row), widths, strict=True))


def _cells(row: Mapping[str, Any]) -> list[str]:
    times = row["microseconds"]
    ratios = [row["ratios"].get(side) for side in ("eager", "compiled")]
    return [
        str(row["size"]),
        *(duration(times[side]) if side in times else "" for side in SIDES),
        *(f"{ratio['value']:.2f}x" if ratio else "" for ratio in ratios),
        f"{row['roofline_microseconds'] / times['student']:.0%}",
    ]


def _error(row: Mapping[str, Any], width: int, look: Look) -> list[str]:
    margin = " " * (width + 2)
    wrapped = textwrap.wrap(say(one_line(row["error"])), look.width, initial_indent=margin, subsequent_indent=margin)
    return [f"{row['size']:>{width}}  {look.paint(wrapped[0].strip(), 'red')}", *wrapped[1:]]


# --- the plot ---------------------------------------------------------------------------------------------------------


def _plot(found: Curves, look: Look) -> Iterator[str]:
    marks = _MARKS if look.unicode else _ASCII_MARKS
    yield (
        "  ".join(f"{look.paint(marks[side], COLOURS[side])} {say(NAMES[side])}" for side in found.rates)
        + f"   ({found.unit})"
    )
    top = rounded_up(max(max(rates) for rates in found.rates.values()))
    canvas = _canvas(found, look.width - _AXIS - 3, top)
    for height, row in enumerate(canvas):
        label = f"{top * (_HEIGHT - 1 - height) / (_HEIGHT - 1):.4g}" if height % _TICK == 0 else ""
        cells = "".join(look.paint(marks[side], COLOURS[side]) if side else " " for side in row)
        yield f"{label:>{_AXIS}} {look.bar}{cells}".rstrip()
    yield _sizes_below(found.sizes, look.width - _AXIS - 3)


def rounded_up(value: float) -> float:
    """The next of 1, 2, 2.5, 5 and 10 times a power of ten: a scale whose fifths are round."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= value)


def _canvas(found: Curves, width: int, top: float) -> list[list[str]]:
    """Rows of cells from the top; a cell names the side that is drawn there, the submission's above all others."""
    canvas = [[""] * width for _ in range(_HEIGHT)]
    places = _places(len(found.sizes), width)
    _draw_line(canvas, places, [_height(rate, top) for rate in found.rates["roofline"]])
    for side in ("compiled", "eager", "student"):
        for place, rate in zip(places, found.rates.get(side, ()), strict=False):
            canvas[_height(rate, top)][place] = side
    return canvas


def _places(count: int, width: int) -> list[int]:
    """Columns of the sizes, evenly spread: they usually double from one to the next."""
    step = (width - 8) / max(count - 1, 1)
    return [4 + round(number * step) for number in range(count)]


def _height(rate: float, top: float) -> int:
    return _HEIGHT - 1 - round(rate / top * (_HEIGHT - 1))


def _draw_line(canvas: list[list[str]], places: Sequence[int], heights: Sequence[int]) -> None:
    for left, right, start, end in zip(places, places[1:], heights, heights[1:], strict=False):
        for column in range(left, right + 1):
            part = (column - left) / max(right - left, 1)
            canvas[round(start + (end - start) * part)][column] = "roofline"
    if len(places) == 1:
        canvas[heights[0]][places[0]] = "roofline"


def _sizes_below(sizes: Sequence[int], width: int) -> str:
    """The sizes under their columns; those that would touch the one before are left out."""
    line = " " * (_AXIS + 2)
    for size, place in zip(sizes, _places(len(sizes), width), strict=True):
        start = max(_AXIS + 2 + place - len(str(size)) // 2, 0)
        if start > len(line) or not line.strip():
            line = line.ljust(start) + str(size)
    return line
