"""The geometry of a class's charts: from numbers to what the templates draw."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from typing import Any

BINS = 10
FLOOR, TALL, LEFT, WIDE = 190.0, 165.0, 10.0, 600.0
"""Pixels: where bars stand, how high the highest is, where the axis begins, and how long it is."""


def histogram(shares: Sequence[float]) -> dict[str, Any] | None:
    """Bars for shares of 0 to 1, in ten bins; None where there are none."""
    if not shares:
        return None
    bins = binned(shares)
    most, step = max(bins.values()), WIDE / BINS
    bars = [_bar(number, bins[number], most, step) for number in range(BINS)]
    middle, mean = statistics.median(shares) * 100, statistics.mean(shares) * 100
    return {"bars": bars, "caption": f"Median {middle:.0f} %, mean {mean:.0f} % of the points that were measured."}


def binned(shares: Sequence[float]) -> Counter[int]:
    """How many of the shares, 0 to 1, lie in each of the BINS; 1 lies in the last."""
    return Counter(min(int(share * BINS), BINS - 1) for share in shares)


def _bar(number: int, count: int, most: int, step: float) -> dict[str, Any]:
    height = round(TALL * count / most, 1)
    x = LEFT + number * step
    return {
        "x": x + 4, "w": step - 8, "y": FLOOR - height, "h": height, "middle": x + step / 2, "count": count or "",
        "name": f"{number * 100 // BINS}–{(number + 1) * 100 // BINS}",
    }  # fmt: skip


def spread(title: str, ratios: Sequence[float], asked: float) -> dict[str, Any]:
    """A dot for each ratio above one axis, and a line at what was asked for."""
    most = 1.1 * max([asked, *ratios])
    dots = [{"x": _at(ratio, most), "y": 58 - 9 * (number % 6)} for number, ratio in enumerate(ratios)]
    ticks = [{"x": _at(most * part / 4, most), "text": f"{most * part / 4:.2g}"} for part in range(5)]
    reached = sum(ratio >= asked for ratio in ratios)
    caption = f"Times as fast as torch: {reached} of {len(ratios)} reach {asked:g}, the dashed line."
    return {"title": title, "dots": dots, "ticks": ticks, "asked": _at(asked, most), "caption": caption}


def _at(value: float, most: float) -> float:
    return round(LEFT + WIDE * value / most, 1)
