"""The geometry of a plot of speed over sizes: the submission, eager torch, torch.compile, and the card's ceiling."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from gradekit.report.text import one_line

WIDTH, HEIGHT, LEFT, BOTTOM = 560.0, 230.0, 58.0, 190.0
TOP, RIGHT = 16.0, 545.0

SIDES = {
    "student": "the submission",
    "eager": "eager torch",
    "compiled": "torch.compile",
    "ceiling": "the card's ceiling",
}


def plot(checks: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Microseconds of one call over the bytes that it has to move, both logarithmic; None where nothing was timed."""
    timed = [check["details"]["speed"] for check in checks if "speed" in check["details"]]
    rows = sorted((_row(each) for each in timed if each.get("roofline")), key=lambda row: row["bytes"])
    if not rows:
        return None
    times = [value for row in rows for value in (*row["times"].values(), *row["interval"])]
    low, high = min(times) / 1.3, max(times) * 1.3
    least, most = rows[0]["bytes"] / 1.5, rows[-1]["bytes"] * 1.5
    across = _scale(least, most, LEFT, RIGHT)
    up = _scale(low, high, BOTTOM, TOP)
    return {
        "lines": [_line(side, rows, across, up) for side in SIDES if any(side in row["times"] for row in rows)],
        "intervals": [{"x": across(row["bytes"]), "y1": up(row["interval"][0]),
        "y2": up(row["interval"][1])} for row in rows],
        "sizes": [{"x": across(row["bytes"]), "text": _bytes(row["bytes"])} for row in rows],
        "ticks": [{"y": up(value), "text": f"{value:.3g}"} for value in _ticks(low, high)],
        "rows": [{"size": row["size"], "cells": [_cell(row, side) for side in SIDES]} for row in rows],
        "heads": [SIDES[side] for side in SIDES], "card": one_line(timed[0].get("card", "")),
        "caption": "Microseconds of one call over the bytes that it has to move; bars are the intervals of the "
                   "submission.",
    }  # fmt: skip


def _row(speed: Mapping[str, Any]) -> dict[str, Any]:
    roofline, times = speed["roofline"], dict(speed["microseconds"])
    student = float(times["student"])
    least = roofline["bytes_least"] / roofline.get("most_bytes_per_second", math.inf)
    flops = roofline.get("most_flops_per_second")
    least = max(least, roofline.get("flops", 0) / flops if flops else 0.0)
    known = {side: float(times[side]) for side in ("student", "eager", "compiled") if times.get(side)}
    known |= {"ceiling": least * 1e6} if least else {}
    return {
        "bytes": max(roofline["bytes_least"], 1),
        "times": known,
        "interval": _interval(speed, student),
        "size": one_line(speed["size"]),
    }


def _interval(speed: Mapping[str, Any], student: float) -> tuple[float, float]:
    """The submission's time as the widest of the ratios' intervals has it."""
    found = [
        (student * r["value"] / r["high"], student * r["value"] / r["low"])
        for r in speed["ratios"].values()
        if r["low"] > 0
    ]
    return min((low for low, _ in found), default=student), max((high for _, high in found), default=student)


def _scale(low: float, high: float, start: float, end: float) -> Any:
    span = math.log(high / low)
    return lambda value: round(start + (end - start) * math.log(value / low) / span, 1)


def _line(side: str, rows: Sequence[Mapping[str, Any]], across: Any, up: Any) -> dict[str, Any]:
    points = [(across(row["bytes"]), up(row["times"][side])) for row in rows if side in row["times"]]
    return {"side": side, "name": SIDES[side], "points": points, "path": " ".join(f"{x},{y}" for x, y in points)}


def _ticks(low: float, high: float) -> list[float]:
    tens = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [step * 10.0**ten for ten in tens for step in (1, 2, 5) if low <= step * 10.0**ten <= high]


def _bytes(count: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} B"


def _cell(row: Mapping[str, Any], side: str) -> str:
    if side not in row["times"]:
        return ""
    text = f"{row['times'][side]:.4g}"
    low, high = row["interval"]
    return f"{text} ({low:.4g} to {high:.4g})" if side == "student" and high > low else text
