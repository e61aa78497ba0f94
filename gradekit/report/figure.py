"""A sweep over sizes as a picture, with matplotlib where it is installed: `pip install 'gradekit[plot]'`."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gradekit.report.bench_table import NAMES, curves

_STYLES = {
    "student": {"color": "tab:green", "marker": "o"},
    "eager": {"color": "tab:orange", "marker": "s"},
    "compiled": {"color": "tab:blue", "marker": "^"},
    "roofline": {"color": "0.4", "linestyle": "--"},
}


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def save(record: Mapping[str, Any], file: Path) -> None:
    """Write the picture of a sweep to `file`, in the format that its ending names (.png, .svg, .pdf).

    Raises:
        ModuleNotFoundError: there is no matplotlib.
        ValueError: nothing was measured, or the ending names no format.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    found = curves(record)
    if found is None:
        raise ValueError("nothing was measured, so there is nothing to draw")
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    FigureCanvasAgg(figure)  # draws into memory: no window, no display
    axes = figure.subplots()
    for side, rates in found.rates.items():
        axes.plot(found.sizes, rates, label=NAMES[side], **_STYLES[side])
    axes.set_xscale("log", base=2)
    axes.set_xticks(found.sizes, labels=[str(size) for size in found.sizes], rotation=30)
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.set(xlabel="size", ylabel=found.unit, title=_title(record))
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(file, dpi=150)


def _title(record: Mapping[str, Any]) -> str:
    return f"{record['assignment']} on {record['environment'].get('gpu', 'a card')}"
