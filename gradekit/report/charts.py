"""The geometry of a class's charts: from numbers to what the templates draw."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from typing import Any

BINS = 10
FLOOR, TALL, LEFT, WIDE = 190.0, 165.0, 10.0, 600.0
"""Pixels: where bars stand, how high the highest is, where the axis begins, and how long it is."""


SPREAD_BAR = 14
"""Pixels that a bar of a spread is wide."""


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
    """Bars above one axis for how many reach each ratio, and a line at what was asked for."""
    most = 1.1 * max([asked, *ratios])
    counts = Counter(int(_at(ratio, most) - LEFT) // SPREAD_BAR for ratio in ratios)
    tallest = max(counts.values(), default=1)
    bars = [
        {"x": LEFT + SPREAD_BAR * place, "h": (h := round(50 * count / tallest, 1)), "y": 66 - h, "count": count}
        for place, count in sorted(counts.items())
    ]
    ticks = [{"x": _at(tick, most), "text": f"{tick:g}"} for tick in round_ticks(most)]
    reached = sum(ratio >= asked for ratio in ratios)
    caption = f"Times as fast as torch: {reached} of {len(ratios)} reach {asked:g}, the dashed line."
    return {"title": title, "bars": bars, "ticks": ticks, "asked": _at(asked, most), "caption": caption}


def _at(value: float, most: float) -> float:
    return round(LEFT + WIDE * value / most, 1)


def round_ticks(most: float) -> list[float]:
    """Round numbers from 0 to at most `most`, three to six of them: multiples of 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(most))
    step = next(unit * power for unit in (0.2, 0.5, 1, 2) if most / (unit * power) <= 5)
    return [round(step * number, 10) for number in range(int(most / step) + 1)]
