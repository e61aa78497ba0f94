"""Draws docs/rooms.svg: the rooms of gradekit/ in their layers, from the imports as they are.

    python tools/rooms.py

A line leads from a room down to one that it imports; what it also reaches by way of another room is left out.
"""

from __future__ import annotations

from pathlib import Path

from drawing import BLUE, DIM, GREEN, GREY, LINE, ORANGE, WIDTH, Sheet
from imports import graph, layers

PAGE = Path(__file__).parent.parent / "docs" / "rooms.svg"

STUDENT = {"tracer"}
DATA = {"program", "findings", "causes", "submission", "assignment", "wire"}
GRADER = {"engine", "judge", "gpu", "subject", "plugin"}

ROW, BOX, GAP = 62, 28, 10


def reduced(rooms: dict[str, set[str]]) -> dict[str, set[str]]:
    """The graph without edges that a longer way makes superfluous."""
    reach = {name: _reach(name, rooms) for name in rooms}
    return {name: needed - set().union(*(reach[n] for n in needed)) for name, needed in rooms.items()}


def _reach(name: str, rooms: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = list(rooms[name])
    while waiting:
        other = waiting.pop()
        if other not in found:
            found.add(other)
            waiting.extend(rooms[other])
    return found


def draw() -> Sheet:
    """The picture; the highest layer, which imports all others, stands at the top."""
    rooms = graph()
    rows = layers(rooms)[::-1]
    sheet = Sheet("The rooms of gradekit in layers; each imports only from layers below it", 40 + ROW * len(rows))
    boxes = {name: box for number, row in enumerate(rows) for name, box in _boxes(row, 20 + ROW * number).items()}
    for name, needed in sorted(reduced(rooms).items()):
        for other in sorted(needed):
            sheet.line(_middle(boxes[name]), boxes[name][1] + BOX, _middle(boxes[other]), boxes[other][1], colour=LINE, width=0.8)
    for name, (x, y, width) in boxes.items():
        sheet.rect(x, y, width, BOX, fill=_fill(name), edge=DIM, round=5, words=name, size=12)
    sheet.text(WIDTH / 2, 34 + ROW * len(rows), "orange: runs student code   blue: data   green: runs and judges programs", size=11, colour=DIM, anchor="middle")
    return sheet


def _boxes(row: list[str], y: float) -> dict[str, tuple[float, float, float]]:
    """The rooms of one layer side by side in the middle: left end, top and width of each."""
    widths = [max(46.0, 7.2 * len(name) + 14) for name in row]
    x = (WIDTH - sum(widths) - GAP * (len(row) - 1)) / 2
    found = {}
    for name, width in zip(row, widths, strict=True):
        found[name] = (x, y, width)
        x += width + GAP
    return found


def _middle(box: tuple[float, float, float]) -> float:
    return box[0] + box[2] / 2


def _fill(name: str) -> str:
    return ORANGE if name in STUDENT else BLUE if name in DATA else GREEN if name in GRADER else GREY


if __name__ == "__main__":
    PAGE.write_text(draw().svg(), encoding="utf-8")
