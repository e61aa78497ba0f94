"""The geometry of a report's pictures: from `details` of a check to the numbers that the templates draw."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from gradekit.report.charts import round_ticks
from gradekit.report.result_pictures import wrong_elements
from gradekit.report.text import for_html

WIDE, HIGH = 420.0, 160.0
"""The largest tensor that is drawn, in pixels."""

LEFT, RIGHT = 160.0, 550.0
"""Where the axis of a picture of speed begins and ends."""

_SIDES = {"eager": "beside eager torch", "compiled": "beside torch.compile"}


def wrong(details: Mapping[str, Any]) -> dict[str, Any] | None:
    """Which part of the result is wrong, over its last two dimensions; None where the record does not say.

    `details.along` has for each dimension its size and the first and last index at which an element is wrong.
    """
    along = details.get("along")
    if not isinstance(along, list) or not along or not details.get("wrong"):
        return None
    rows, columns = ({"of": 1, "first": 0, "last": 0}, along[-1]) if len(along) == 1 else (along[-2], along[-1])
    width, height = _size(rows["of"], columns["of"])
    x, w = _span(columns, width)
    y, h = _span(rows, height)
    first = (details.get("first") or {}).get("index") or [0]
    at = [0, *first][-2:]
    return {
        "width": width, "height": height, "x": x, "y": y, "w": w, "h": h,
        "first_x": _middle(at[1], columns["of"], width), "first_y": _middle(at[0], rows["of"], height),
        "caption": _caption(details, along),
    }  # fmt: skip


def wrong_image(details: Mapping[str, Any]) -> str:
    """The same as an image within HTML, its caption as text, for a page without styles; "" where there is none."""
    picture = wrong(details)
    if picture is None:
        return ""
    width, height = picture["width"] + 20, picture["height"] + 20
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="-10 -10 {width} {height}">'
        f'<rect width="{picture["width"]}" height="{picture["height"]}" fill="#e3f2fd" stroke="#263238"/>'
        f'<rect x="{picture["x"]}" y="{picture["y"]}" width="{picture["w"]}" height="{picture["h"]}" fill="#c62828"/>'
        f'<circle cx="{picture["first_x"]}" cy="{picture["first_y"]}" r="4" fill="#ffffff" stroke="#263238"/></svg>'
    )
    data, caption = base64.b64encode(svg.encode()).decode("ascii"), for_html(picture["caption"])
    return f'<p><img alt="{caption}" src="data:image/svg+xml;base64,{data}"/></p><p>{caption}</p>'


def _size(rows: int, columns: int) -> tuple[float, float]:
    scale = min(WIDE / max(columns, 1), HIGH / max(rows, 1), 28.0)
    return round(max(scale * columns, 12.0), 1), round(max(scale * rows, 12.0), 1)


def _span(along: Mapping[str, Any], length: float) -> tuple[float, float]:
    step = length / max(along["of"], 1)
    return round(along["first"] * step, 1), round(max((along["last"] - along["first"] + 1) * step, 2.0), 1)


def _middle(index: int, of: int, length: float) -> float:
    return round((index + 0.5) * length / max(of, 1), 1)


def _caption(details: Mapping[str, Any], along: Sequence[Mapping[str, Any]]) -> str:
    spans = " × ".join(f"{each['first']} to {each['last']} of {each['of']}" for each in along)
    return f"The result: {wrong_elements(details)}, at indices {spans}. The dot is the first."


def speed(measured: Mapping[str, Any], sentences: Sequence[str]) -> dict[str, Any]:
    """The ratios with their intervals on one axis, and the thresholds that were asked for."""
    asked = {verdict["side"]: float(verdict["at_least"]) for verdict in measured["verdicts"]}
    ratios = measured["ratios"]
    most = 1.15 * max([1.0, *(float(r["high"]) for r in ratios.values()), *asked.values()])

    def at(value: float) -> float:
        return round(LEFT + (RIGHT - LEFT) * value / most, 1)

    rows = [
        {
            "name": _SIDES[side], "low": at(ratio["low"]), "high": at(ratio["high"]), "value": at(ratio["value"]),
            "asked": at(asked[side]) if side in asked else None,
        }
        for side, ratio in ratios.items()
    ]  # fmt: skip
    ticks = [{"x": at(tick), "text": f"{tick:g}"} for tick in round_ticks(most)]
    caption = "Times as fast, with the interval of the measurement; a dashed line is what was asked for."
    return {"sentences": list(sentences), "rows": rows, "ticks": ticks, "caption": caption}
