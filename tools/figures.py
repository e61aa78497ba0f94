"""Draws the pictures of the handouts: `python tools/figures.py` writes assignments/<id>/figure.svg for each of them.

The course's tests fail where a committed picture differs from what is drawn here.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from drawing import (
    BLUE,
    DARK_BLUE,
    DARK_GREEN,
    DARK_ORANGE,
    DIM,
    GREEN,
    GREY,
    LINE,
    ORANGE,
    OUTSIDE,
    RED,
    WHITE,
    Sheet,
)

ASSIGNMENTS = Path(__file__).parents[1] / "assignments"

_NOTE: dict[str, Any] = {"size": 13, "colour": DIM}


def vector_add() -> Sheet:
    sheet = Sheet("Four programs, each with a tile of eight elements; the last tile is cut by the mask", 262)
    left, size = 28, 22
    for program, fill in enumerate((BLUE, GREEN, BLUE, ORANGE)):
        start = left + program * 8 * size
        sheet.brace(start + 3, start + 8 * size - 3, 50, f"program {program}")
        numbers = range(program * 8, program * 8 + 8)
        fills = [fill if number < 28 else OUTSIDE for number in numbers]
        sheet.cells(start, 54, fills, [str(n) if n < 28 else "" for n in numbers])
    end = left + 28 * size
    sheet.line(end, 44, end, 96, colour=RED, width=2)
    sheet.text(end - 6, 112, "n = 28", anchor="end", colour=RED, bold=True, size=13)
    sheet.text(end + 4, 112, "not mine", colour=DIM, size=13)
    sheet.text(left, 146, "Program 3 asks:", bold=True)
    rows = [("which tile is mine?", "offsets = 3 * 8 + tl.arange(0, 8)"), ("what of it exists?", "mask = offsets < n")]
    for row, (question, code) in enumerate(rows):
        y = 172 + 44 * row
        sheet.text(left, y, question)
        sheet.code(left + 146, y, code)
        words = [str(n) for n in range(24, 32)] if row == 0 else ["yes"] * 4 + ["no"] * 4
        fills = [ORANGE] * 8 if row == 0 else [ORANGE] * 4 + [OUTSIDE] * 4
        sheet.cells(left + 146 + 286, y - 16, fills, words, width=33)
    sheet.text(left, 250, "Only where the mask says yes does it load and store: an element is written by one program.",
               size=13, colour=DIM)  # fmt: skip
    return sheet


_STEPS = ["x + bias", "h ** 3", "* 0.0447", "h + ...", "* 0.798", "tanh", "1 + ...", "* h", "* 0.5", "+ resid."]


def fused_chain() -> Sheet:
    sheet = Sheet("Ten eager kernels cross to memory and back ten times; the fused kernel once", 340)
    left, step, width = 28, 71, 64
    sheet.text(left, 28, "Eager: ten kernels, ten round trips", bold=True)
    sheet.rect(left, 40, 703, 26, fill=ORANGE, words="GPU memory: large, and far away", size=13)
    for index, name in enumerate(_STEPS):
        x = left + index * step
        sheet.rect(x, 112, width, 34, fill=BLUE, round=4, words=name, size=12)
        sheet.arrow(x + 20, 68, x + 20, 110)
        sheet.arrow(x + 46, 110, x + 46, 68)
    sheet.text(left, 194, "Fused: one kernel, one round trip", bold=True)
    sheet.rect(left, 206, 703, 26, fill=ORANGE, words="GPU memory", size=13)
    sheet.rect(left, 274, 703, 52, fill=WHITE, edge=DARK_BLUE, round=6, dashed=True)
    for index, name in enumerate(_STEPS):
        x = left + 6 + index * (step - 1.2)
        sheet.rect(x, 284, width - 5, 26, fill=BLUE, round=4, words=name, size=11)
        if index:
            sheet.line(x - 10, 297, x, 297)
    sheet.arrow(left + 30, 234, left + 30, 272, width=2)
    sheet.arrow(left + 673, 272, left + 673, 234, width=2)
    sheet.text(left + 44, 258, "each input is read once", size=13)
    sheet.text(left + 660, 258, "the result is written once", size=13, anchor="end")
    sheet.text(380, 258, "between: registers", size=13, anchor="middle", colour=DARK_BLUE, bold=True)
    return sheet


def softmax() -> Sheet:
    sheet = Sheet("A row is loaded once, goes through maximum, exp, sum and division on chip, and is stored once", 330)
    x0, size = 216, 40
    values, pads = ["2", "5", "1", "4", "3"], 3
    sheet.text(28, 44, "a row in memory, N = 5")
    sheet.cells(x0, 26, [ORANGE] * 5, values, width=size, height=28, size=13)
    sheet.rect(18, 88, 724, 172, fill=WHITE, edge=DARK_BLUE, dashed=True, round=6)
    sheet.text(732, 104, "on chip", colour=DARK_BLUE, bold=True, anchor="end", size=13)
    sheet.text(28, 120, "the tile, BLOCK = 8")
    sheet.cells(x0, 102, [BLUE] * 5 + [OUTSIDE] * pads, [*values, *["?"] * pads], width=size, height=28, size=13)
    sheet.text(28, 176, "exp(x - maximum)")
    sheet.cells(x0, 158, [BLUE] * 5 + [OUTSIDE] * pads, [".05", "1", ".02", ".37", ".14", "0", "0", "0"],
                width=size, height=28, size=13)  # fmt: skip
    sheet.text(28, 232, "divided by the sum")
    sheet.cells(x0, 214, [GREEN] * 5 + [OUTSIDE] * pads, [".03", ".64", ".01", ".23", ".09", "", "", ""],
                width=size, height=28, size=13)  # fmt: skip
    sheet.text(550, 149, "maximum = 5", size=13)
    sheet.text(550, 205, "sum = 1.58", size=13)
    for y in (132, 188):
        sheet.path([(x0 + 8 * size + 4, y - 16), (540, y - 16), (540, y + 12)], arrow=True)
    sheet.text(550, 122, "what wins no maximum, and", size=12, colour=DIM)
    sheet.text(550, 178, "adds nothing to the sum?", size=12, colour=DIM)
    sheet.cells(x0, 292, [ORANGE] * 5, ["", "", "", "", ""], width=size, height=28)
    sheet.text(28, 310, "the result in memory")
    sheet.arrow(x0 + 100, 56, x0 + 100, 100, width=2)
    sheet.text(x0 + 112, 76, "read once, with a mask", size=13)
    sheet.arrow(x0 + 100, 244, x0 + 100, 290, width=2)
    sheet.text(x0 + 112, 280, "written once, with the mask", size=13)
    return sheet


def _grid(
    sheet: Sheet, x: float, y: float, rows: int, columns: int, size: float, fills: dict[tuple[int, int], str]
) -> None:
    for row in range(rows):
        for column in range(columns):
            fill = fills.get((row, column), WHITE)
            sheet.rect(x + column * size, y + row * size, size, size, fill=fill, line=0.8, edge=LINE)
    sheet.rect(x, y, columns * size, rows * size, fill="none", line=1.4)


def matmul() -> Sheet:
    sheet = Sheet("A program walks along a row of tiles of a and a column of tiles of b, for one tile of c", 356)
    size = 36
    ax, ay, bx, by = 96, 196, 350, 24
    _grid(sheet, ax, ay, 4, 4, size, {(1, k): BLUE if k != 2 else DARK_BLUE for k in range(4)})
    _grid(sheet, bx, by, 4, 5, size, {(k, 2): GREEN if k != 2 else DARK_GREEN for k in range(4)})
    _grid(sheet, bx, ay, 4, 5, size, {(1, 2): ORANGE})
    sheet.text(ax - 12, ay + 78, "M", bold=True, anchor="end")
    sheet.text(ax + 72, ay - 10, "K", bold=True, anchor="middle")
    sheet.text(bx - 12, by + 78, "K", bold=True, anchor="end")
    sheet.text(bx + 90, by - 8, "N", bold=True, anchor="middle")
    sheet.text(ax + 6, ay + 4 * size - 8, "a", bold=True)
    sheet.text(bx + 6, by + 4 * size - 8, "b", bold=True)
    sheet.text(bx + 6, ay + 4 * size - 8, "c", bold=True)
    sheet.arrow(ax + 4, ay + size * 1.5, ax + 4 * size - 4, ay + size * 1.5, width=2)
    sheet.arrow(bx + size * 2.5, by + 4, bx + size * 2.5, by + 4 * size - 4, width=2)
    sheet.line(ax + 4 * size + 6, ay + size * 1.5, bx + 2 * size - 4, ay + size * 1.5, dashed=True, colour=DIM)
    sheet.line(bx + size * 2.5, by + 4 * size + 6, bx + size * 2.5, ay + size - 4, dashed=True, colour=DIM)
    x = bx + 5 * size + 18
    sheet.text(x, by + 24, "one program,", size=13, bold=True)
    sheet.text(x, by + 42, "one tile of c:", size=13, bold=True)
    sheet.text(x, by + 72, "at each step along K,", size=13)
    sheet.text(x, by + 90, "load two tiles and add", size=13)
    sheet.text(x, by + 108, "their product, tl.dot,", size=13)
    sheet.text(x, by + 126, "to an accumulator", size=13)
    sheet.text(x, ay + 48, "the accumulator stays", size=13)
    sheet.text(x, ay + 66, "in registers, and is", size=13)
    sheet.text(x, ay + 84, "written once", size=13)
    return sheet


def dropout() -> Sheet:
    sheet = Sheet("Each element's random number is computed from the seed and the element's own number", 324)
    x0, size = 250, 56
    kept = [True, True, False, True, False, True, True, False]
    numbers = ["0.71", "0.58", "0.12", "0.93", "0.27", "0.44", "0.86", "0.05"]
    rows: list[tuple[str, list[str], list[str]]] = [
        ("the element's number", [str(i) for i in range(40, 48)], [GREY] * 8),
        ("tl.rand(seed, number)", numbers, [BLUE] * 8),
        ("kept, where it is >= p = 0.3", ["yes" if k else "no" for k in kept], [GREEN if k else OUTSIDE for k in kept]),
        ("forward: x / (1 - p), or 0", [f"x{i}/0.7" if k else "0" for i, k in zip(range(40, 48), kept, strict=True)],
         [ORANGE if k else WHITE for k in kept]),
        ("backward: dy / (1 - p), or 0", [f"d{i}/0.7" if k else "0" for i, k in zip(range(40, 48), kept, strict=True)],
         [ORANGE if k else WHITE for k in kept]),
    ]  # fmt: skip
    for index, (label, words, fills) in enumerate(rows):
        y = 24 + index * 52
        sheet.text(28, y + 19, label)
        sheet.cells(x0, y, fills, words, width=size, height=30, size=12)
        if index < 3:
            for column in range(8):
                x = x0 + (column + 0.5) * size
                sheet.arrow(x, y + 31, x, y + 51, width=1)
    sheet.line(x0 - 10, 147, x0 - 22, 147, colour=DIM)
    sheet.path([(x0 - 22, 147), (x0 - 22, 247), (x0 - 4, 247)], edge=DIM, arrow=True)
    sheet.text(28, 292, "No mask is stored: the same seed and number give the same number, whoever asks.", **_NOTE)
    sheet.text(28, 310, "The backward pass makes the forward's mask again.", **_NOTE)
    return sheet


def layer_norm() -> Sheet:
    sheet = Sheet("dx is made row by row; dw and db are sums over all rows: first partial sums, then their sum", 372)
    size, x0 = 22, 40
    colours = [BLUE, BLUE, BLUE, GREEN, GREEN, GREEN, ORANGE, ORANGE]
    sheet.text(x0, 30, "x and dy, [M, N]", bold=True)
    for row, fill in enumerate(colours):
        sheet.cells(x0, 42 + row * size, [fill] * 8)
    for program, (first, rows) in enumerate(((0, 3), (3, 3), (6, 2))):
        y = 42 + (first + rows / 2) * size
        sheet.text(x0 + 8 * size + 10, y + 5, f"program {program}", size=13)
        sheet.arrow(x0 + 8 * size + 84, y, 352, 72 + program * 56, width=1.5)
    sheet.text(360, 30, "first kernel: partial sums, [programs, N]", bold=True)
    for program, fill in enumerate((BLUE, GREEN, ORANGE)):
        sheet.cells(360, 60 + program * 56, [fill] * 8)
    sheet.text(360 + 8 * size + 12, 70, "each program adds up its", size=13)
    sheet.text(360 + 8 * size + 12, 88, "own rows, and writes into", size=13)
    sheet.text(360 + 8 * size + 12, 106, "a row of its own: no two", size=13)
    sheet.text(360 + 8 * size + 12, 124, "programs meet", size=13)
    for column in range(8):
        x = 360 + (column + 0.5) * size
        sheet.arrow(x, 198, x, 244, width=1)
    sheet.text(360 + 8 * size + 12, 224, "second kernel: add up", size=13)
    sheet.text(360 + 8 * size + 12, 242, "each column", size=13)
    sheet.cells(360, 248, [WHITE] * 8)
    sheet.text(360 + 8 * size + 12, 264, "dw (and db), [N]", bold=True)
    sheet.text(x0, 250, "dx, [M, N]", bold=True)
    for row in range(2):
        sheet.cells(x0, 262 + row * size, [BLUE] * 8)
    sheet.text(x0 + 8 * size + 10, 278, "row by row:", size=13)
    sheet.text(x0 + 8 * size + 10, 296, "from that row alone", size=13)
    sheet.text(x0, 340, "If every program added to dw itself, they would overwrite one another, or the result", **_NOTE)
    sheet.text(x0, 358, "would depend on who came first: floating-point sums are not the same in every order.", **_NOTE)
    return sheet


def giou_loss() -> Sheet:
    sheet = Sheet("Two boxes, what they share, and the smallest box that encloses both", 300)
    sheet.rect(40, 40, 340, 220, fill=GREY, edge=DIM, dashed=True)
    sheet.rect(40, 40, 210, 140, fill=BLUE, edge=DARK_BLUE, line=1.6)
    sheet.rect(170, 110, 210, 150, fill=ORANGE, edge=DARK_ORANGE, line=1.6)
    sheet.rect(170, 110, 80, 70, fill=GREEN, edge=DARK_GREEN, line=1.6)
    sheet.text(54, 64, "target", bold=True, colour=DARK_BLUE)
    sheet.text(366, 248, "prediction", bold=True, colour=DARK_ORANGE, anchor="end")
    sheet.text(210, 150, "inter", anchor="middle", bold=True, colour=DARK_GREEN)
    sheet.text(46, 252, "enclosing box", colour=DIM, size=13)
    sheet.text(40, 32, "(left, top)", size=12, colour=DARK_BLUE, anchor="start")
    sheet.text(380, 278, "(right, bottom)", size=12, colour=DARK_ORANGE, anchor="end")
    x = 420
    sheet.text(x, 62, "union = target + prediction - inter")
    sheet.rect(x, 82, 18, 18, fill=GREEN, edge=DARK_GREEN)
    sheet.text(x + 28, 96, "inter / union: how much they share")
    sheet.rect(x, 116, 18, 18, fill=GREY, edge=DIM, dashed=True)
    sheet.text(x + 28, 130, "(enclosing - union) / enclosing:")
    sheet.text(x + 28, 150, "how much of the enclosing box is empty")
    sheet.text(x, 188, "GIoU = inter / union", bold=True)
    sheet.text(x + 42, 210, "- (enclosing - union) / enclosing", bold=True)
    sheet.text(x, 244, "Boxes that do not meet have inter = 0.", size=13, colour=DIM)
    sheet.text(x, 262, "The empty part still tells how far apart", size=13, colour=DIM)
    sheet.text(x, 280, "they are: there is a gradient to follow.", size=13, colour=DIM)
    return sheet


def flash_attention() -> Sheet:
    sheet = Sheet("A program keeps one tile of q, streams tiles of k and v past it, and never stores the matrix", 384)
    size = 34
    qx, ky, my = 130, 28, 92
    for column in range(7):
        fill = GREEN if column <= 3 else WHITE
        sheet.rect(qx + column * size, ky, size, 40, fill=fill if column != 2 else DARK_GREEN, line=0.8)
    sheet.text(qx - 10, ky + 25, "k, v", bold=True, anchor="end")
    sheet.arrow(qx + 4, ky + 52, qx + 4 * size - 4, ky + 52, width=2)
    sheet.text(qx + 4 * size + 6, ky + 56, "tile after tile", size=13)
    for row in range(7):
        sheet.rect(70, my + row * size, 40, size, fill=DARK_BLUE if row == 3 else BLUE, line=0.8)
    sheet.text(90, my + 7 * size + 18, "q", bold=True, anchor="middle")
    for row in range(7):
        for column in range(7):
            fill = OUTSIDE if column > row else ORANGE if row == 3 else WHITE
            sheet.rect(qx + column * size, my + row * size, size, size, fill=fill, line=0.8, edge=LINE)
    sheet.rect(qx, my, 7 * size, 7 * size, fill="none", dashed=True, edge=DIM)
    sheet.text(qx, my + 7 * size + 18, "p, [S, S]: in no memory, only one tile at a time", colour=RED, bold=True)
    sheet.text(qx, my + 7 * size + 38, "hatched: skipped where attention is causal", size=13, colour=DIM)
    x = 420
    sheet.rect(x, 92, 316, 212, fill=WHITE, edge=DARK_BLUE, dashed=True, round=6)
    sheet.text(x + 14, 114, "on chip, for one tile of q", bold=True, colour=DARK_BLUE, size=13)
    lines = [
        ("m", "the largest score so far"),
        ("l", "the sum of exp(score - m) so far"),
        ("acc", "the sum of exp(score - m) * v so far"),
    ]
    for index, (name, meaning) in enumerate(lines):
        sheet.rect(x + 14, 128 + index * 34, 44, 26, fill=ORANGE, round=3, words=name, mono=True, size=13)
        sheet.text(x + 68, 146 + index * 34, meaning, size=13)
    sheet.text(x + 14, 252, "If a new tile has a larger score, l and acc", size=13)
    sheet.text(x + 14, 270, "are first multiplied by exp(old m - new m).", size=13)
    sheet.text(x + 14, 288, "At the end: acc / l.", size=13)
    sheet.arrow(qx + 7 * size + 6, my + 3.5 * size, x - 4, my + 3.5 * size, width=1.5)
    return sheet


def spmm() -> Sheet:
    sheet = Sheet("A sparse matrix in CSR form, and the rows of the dense matrix that one of its rows needs", 372)
    size = 30
    entries = {(0, 1): "a", (0, 4): "b", (2, 0): "c", (2, 2): "d", (2, 5): "e", (3, 3): "f"}
    sheet.text(40, 30, "the matrix, [4, 6]", bold=True)
    for row in range(4):
        words = [entries.get((row, column), "") for column in range(6)]
        fills = [(ORANGE if row == 2 else BLUE) if word else WHITE for word in words]
        sheet.cells(40, 42 + row * size, fills, words, width=size, height=size, size=14)
    sheet.text(40 + 6 * size + 10, 42 + 1.5 * size + 5, "an empty row", size=13, colour=DIM)
    sheet.text(40, 206, "as CSR", bold=True)
    arrays = [
        ("crow", ["0", "2", "2", "5", "6"], [WHITE, WHITE, ORANGE, ORANGE, WHITE]),
        ("col", ["1", "4", "0", "2", "5", "3"], [BLUE, BLUE, ORANGE, ORANGE, ORANGE, BLUE]),
        ("values", ["a", "b", "c", "d", "e", "f"], [BLUE, BLUE, ORANGE, ORANGE, ORANGE, BLUE]),
    ]
    for index, (name, words, fills) in enumerate(arrays):
        y = 218 + index * 42
        sheet.code(40, y + 20, name)
        sheet.cells(110, y, fills, words, width=size, height=size, size=14)
    sheet.text(40, 356, "Row 2 is entries crow[2] = 2 up to crow[3] = 5: how many there are differs from row to row.",
               size=13, colour=DIM)  # fmt: skip
    x = 400
    sheet.text(x, 30, "dense, [6, N]", bold=True)
    for row in range(6):
        fill = ORANGE if row in (0, 2, 5) else WHITE
        sheet.cells(x, 42 + row * 26, [fill] * 5, width=26, height=26)
        sheet.text(x - 8, 60 + row * 26, str(row), size=12, colour=DIM, anchor="end")
    for row, name in ((0, "c *"), (2, "d *"), (5, "e *")):
        sheet.arrow(x + 5 * 26 + 4, 55 + row * 26, x + 5 * 26 + 60, 55 + row * 26)
        sheet.text(x + 5 * 26 + 68, 60 + row * 26, f"{name} row {row}")
    sheet.path([(x + 268, 42), (x + 276, 42), (x + 276, 198), (x + 268, 198)], edge=DIM)
    sheet.text(x + 286, 124, "added up", size=13)
    sheet.text(x, 238, "row 2 of the result, [N]", bold=True)
    sheet.cells(x, 250, [GREEN] * 5, width=26, height=26)
    sheet.path([(x + 300, 134), (x + 300, 263), (x + 5 * 26 + 6, 263)], arrow=True, line=1.5)
    sheet.text(x, 300, "The rows to be read are data: their addresses", size=13)
    sheet.text(x, 318, "come from col, and are known only in the kernel.", size=13)
    return sheet


def decode_attention() -> Sheet:
    sheet = Sheet("Caches of different lengths, cut into splits, whose partial results are joined", 352)
    x0, size = 130, 26
    lengths = [14, 5, 9]
    sheet.text(28, 30, "one new query for each sequence, and a cache that is filled to its length", bold=True)
    for row, length in enumerate(lengths):
        y = 48 + row * 48
        sheet.rect(28, y, 46, 28, fill=ORANGE, round=3, words=f"q{row}", size=13)
        sheet.arrow(78, y + 14, x0 - 4, y + 14)
        colours = [BLUE, GREEN, BLUE, GREEN]
        fills = [colours[i // 4] if i < length else OUTSIDE for i in range(16)]
        sheet.cells(x0, y, fills, width=size, height=28)
        sheet.text(x0 + 16 * size + 12, y + 19, f"length {length}", size=13)
    for split in range(1, 4):
        x = x0 + split * 4 * size
        sheet.line(x, 42, x, 182, colour=DARK_BLUE, width=2, dashed=True)
    sheet.text(x0 + 16 * size + 92, 67, "hatched: old", size=12, colour=DIM)
    sheet.text(x0 + 16 * size + 92, 83, "rubbish, never", size=12, colour=DIM)
    sheet.text(x0 + 16 * size + 92, 99, "to be used", size=12, colour=DIM)
    sheet.text(28, 220, "one long row must not", size=13)
    sheet.text(28, 238, "keep one program busy", size=13)
    sheet.text(28, 256, "while the others wait:", size=13)
    for split in range(4):
        x = 200 + split * 92
        sheet.arrow(x0 + (split * 4 + 2) * size, 186, x + 38, 212, width=1.2)
        fill = BLUE if split % 2 == 0 else GREEN
        sheet.rect(x, 216, 76, 44, fill=fill, round=4, words=f"split {split}\nm, l, acc", size=12)
        sheet.arrow(x + 38, 262, 366, 296, width=1.2)
    sheet.rect(226, 300, 280, 34, fill=ORANGE, round=4, words="joined by their m and l: the result", size=13)
    sheet.text(580, 234, "a split past the length", size=13)
    sheet.text(580, 252, "is empty: l = 0", size=13)
    return sheet


def custom_op() -> Sheet:
    sheet = Sheet("The same model, with a custom operator in place of two eager ones, in one compiled graph", 344)
    y = 52
    sheet.text(28, 30, "the model, as it was", bold=True)
    boxes = [("Linear\n(no bias)", GREY, 110), ("+ bias", BLUE, 90), ("GELU", BLUE, 90), ("Linear", GREY, 110)]
    x = 28.0
    for index, (name, fill, width) in enumerate(boxes):
        sheet.rect(x, y, width, 44, fill=fill, round=4, words=name, size=13)
        x += width
        if index < 3:
            sheet.arrow(x + 2, y + 22, x + 34, y + 22)
            x += 36
    sheet.text(x + 20, y + 18, "two kernels between the", size=13)
    sheet.text(x + 20, y + 36, "products, two round trips", size=13)
    y = 158
    sheet.text(28, y - 22, "the model, unchanged, with your operator in it", bold=True)
    sheet.rect(18, y - 12, 538, 68, fill=WHITE, edge=DARK_BLUE, dashed=True, round=6)
    sheet.rect(28, y, 110, 44, fill=GREY, round=4, words="Linear\n(no bias)", size=13)
    sheet.rect(174, y, 216, 44, fill=ORANGE, round=4, words="bias_gelu", mono=True, size=14, bold=True)
    sheet.rect(426, y, 110, 44, fill=GREY, round=4, words="Linear", size=13)
    sheet.arrow(140, y + 22, 172, y + 22)
    sheet.arrow(392, y + 22, 424, y + 22)
    sheet.text(570, y + 12, "torch.compile sees one", size=13, colour=DARK_BLUE)
    sheet.text(570, y + 30, "graph, without a break", size=13, colour=DARK_BLUE)
    sheet.text(28, 252, "what bias_gelu tells the framework", bold=True)
    facts = [
        ("its schema", "name, arguments, and that it changes none"),
        ("its shapes", "what comes out, without data"),
        ("its kernel", "the Triton launch, which the compiler can read"),
    ]
    for index, (name, meaning) in enumerate(facts):
        left = 28 + index * 240
        sheet.rect(left, 266, 224, 60, fill=GREEN, round=4)
        sheet.text(left + 10, 288, name, bold=True, size=13)
        first, second = _halves(meaning)
        sheet.text(left + 10, 305, first, size=12)
        sheet.text(left + 10, 320, second, size=12)
    return sheet


def histogram() -> Sheet:
    sheet = Sheet("Each lane of a tile adds one to the bin that its number names; lanes of two programs meet in bin 2", 300)
    left, size = 110, 40
    tiles = [("program 0", ["2", "5", "2", "0"], BLUE, 110), ("program 1", ["1", "2", "4", "2"], GREEN, 440)]
    sheet.text(28, 62, "x")
    for name, words, fill, x in tiles:
        sheet.text(x, 30, name, bold=True, size=13)
        sheet.cells(x, 42, [fill] * 4, words, width=size, height=30)
    sheet.text(28, 182, "bins")
    for number in range(6):
        x = left + number * 90
        sheet.rect(x, 160, 70, 34, fill=ORANGE if number == 2 else WHITE, words=str([1, 1, 4, 0, 1, 1][number]))
        sheet.text(x + 35, 214, str(number), size=12, colour=DIM, anchor="middle")
    for lane in (0, 2):
        sheet.arrow(110 + lane * size + 20, 74, left + 2 * 90 + 15 + 8 * lane, 158)
        sheet.arrow(440 + (lane + 1) * size + 20, 74, left + 2 * 90 + 50 + 6 * lane, 158)
    sheet.text(28, 250, "load 1, add 1, store 2: whoever comes between the load and the store is lost.", size=13)
    sheet.text(28, 274, "tl.atomic_add does the three steps as one: all four are counted, in whatever order.", size=13)
    return sheet


def cross_entropy() -> Sheet:
    sheet = Sheet("A row in three tiles; the maximum and the sum are carried along, and one logit is loaded by its label", 320)
    left, size = 150, 38
    rows = [["1", "0", "2", "1"], ["0", "5", "1", "3"], ["2", "1", "", ""]]
    for number, words in enumerate(rows):
        x = left + number * 195
        sheet.text(x, 30, f"tile {number}", bold=True, size=13)
        sheet.cells(x, 42, [(BLUE if w else OUTSIDE) for w in words], words, width=size, height=30)
        sheet.arrow(x + 76, 74, x + 76, 106)
    sheet.text(28, 62, "a row, V = 10")
    carried = [("maximum 2", "sum 1.87"), ("maximum 5", "sum 1.25"), ("maximum 5", "sum 1.32")]
    for number, (top, total) in enumerate(carried):
        x = left + number * 195
        sheet.rect(x, 108, 152, 54, fill=WHITE, edge=DARK_BLUE, round=6)
        sheet.text(x + 76, 131, top, anchor="middle", size=13)
        sheet.text(x + 76, 151, total, anchor="middle", size=13)
        if number:
            sheet.arrow(x - 41, 135, x - 3, 135, width=2)
    sheet.text(left + 195, 186, "1.87 * exp(2 - 5) = 0.09 is left of the sum before", size=13, colour=DIM)
    sheet.text(28, 240, "label")
    sheet.cells(left, 222, [ORANGE], ["7"], width=size, height=30)
    sheet.text(left + 52, 242, "is loaded, and is an offset: x[7] = 3, one load more", size=13)
    sheet.text(28, 292, "loss")
    sheet.text(left, 292, "log(1.32) + (5 - 3) = 2.28: one number is written", size=13)
    return sheet


def kv_cache_update() -> Sheet:
    sheet = Sheet("New rows go to the position of their own sequence; all other rows of the caches stay", 300)
    left, size = 250, 44
    for sequence, position in enumerate((5, 2)):
        y = 50 + sequence * 104
        sheet.text(28, y + 5, f"sequence {sequence}", bold=True)
        sheet.text(28, y + 26, f"positions[{sequence}] = {position}", size=13)
        sheet.rect(150, y - 14, size, 28, fill=ORANGE, words="new")
        fills = [BLUE if s < position else ORANGE if s == position else OUTSIDE for s in range(10)]
        sheet.cells(left, y - 14, fills, [str(s) for s in range(10)], width=size, height=28, size=13)
        x = left + position * size + size / 2
        sheet.path([(172, y + 16), (172, y + 44), (x, y + 44), (x, y + 18)], arrow=True)
    sheet.text(left, 250, "blue: earlier tokens, which stay; hatched: not used yet, whatever it holds stays too", size=13)
    sheet.text(28, 282, "One row of a cache is written for each head, and nothing else is read or written.", size=13, colour=DIM)
    return sheet


def _halves(words: str, limit: int = 32) -> tuple[str, str]:
    if len(words) <= limit:
        return words, ""
    cut = words.rfind(" ", 0, limit)
    return words[:cut], words[cut + 1 :]


def lesson() -> Sheet:
    sheet = Sheet("The levels of a GPU's memory, and the stages from Python to machine code", 400)
    sheet.text(28, 30, "where data can be (an H200)", bold=True)
    levels = [
        ("registers", "256 KB in each of 132 SMs", 190, GREEN),
        ("shared memory and L1", "256 KB in each SM", 236, GREEN),
        ("L2 cache", "tens of MB, for all SMs", 286, BLUE),
        ("GPU memory (VRAM)", "141 GB, 4.8 TB/s", 336, ORANGE),
    ]
    for index, (name, facts, width, fill) in enumerate(levels):
        y = 48 + index * 70
        sheet.rect(196 - width / 2, y, width, 56, fill=fill, round=4)
        sheet.text(196, y + 24, name, anchor="middle", bold=True, size=13)
        sheet.text(196, y + 43, facts, anchor="middle", size=11.5)
    sheet.text(28, 356, "The wall: ten operations cross to the lowest level and back", size=13)
    sheet.text(28, 374, "ten times. Fused into one kernel, they cross it once.", size=13)
    x = 420
    sheet.text(x, 30, "what the compiler decides, and where", bold=True)
    stages = [
        ("Python", "what one block computes", GREY),
        ("ttir", "tiles, and operations on whole tiles", BLUE),
        ("ttgir", "which thread holds which element", BLUE),
        ("llir", "what each single thread does", GREEN),
        ("ptx", "instructions; registers without limit", GREEN),
        ("cubin", "real registers, in machine code", ORANGE),
    ]
    for index, (name, meaning, fill) in enumerate(stages):
        y = 48 + index * 54
        sheet.rect(x, y, 70, 34, fill=fill, round=4, words=name, mono=True, size=13)
        sheet.text(x + 82, y + 22, meaning, size=12.5)
        if index:
            sheet.arrow(x + 35, y - 18, x + 35, y - 2)
    return sheet


def tiles() -> Sheet:
    sheet = Sheet(
        "A column of row numbers and a row of column numbers make a tile of places; a sum leaves a column", 334
    )
    size, high = 44, 34
    sheet.text(28, 30, "a matrix of 6 by 3, row by row: strides (3, 1)", bold=True)
    sheet.text(28, 52, "program 1 has the rows 4 to 7 and the columns 0 to 3; hatched: what does not exist", size=13)
    x0, y0 = 240, 130
    sheet.code(28, y0 + 22, "rows[:, None] * 3")
    sheet.code(28, y0 + 42, "[4, 1]")
    sheet.code(x0 + 4 * size + 14, y0 - 22, "cols[None, :] * 1   [1, 4]")
    sheet.cells(x0, y0 - 44, [ORANGE] * 4, ["0", "1", "2", "3"], width=size, height=high, size=13)
    for row in range(4):
        y = y0 + row * high
        sheet.cells(x0 - size - 10, y, [ORANGE], [str(3 * (4 + row))], width=size, height=high, size=13)
        fills = [BLUE if row < 2 and column < 3 else OUTSIDE for column in range(4)]
        words = [str(3 * (4 + row) + column) if fills[column] == BLUE else "" for column in range(4)]
        sheet.cells(x0, y, fills, words, width=size, height=high, size=13)
    sheet.text(x0, y0 + 4 * high + 22, "places: the column, repeated across,", size=13)
    sheet.text(x0, y0 + 4 * high + 40, "plus the row, repeated down  [4, 4]", size=13)
    x1 = 620
    sheet.arrow(x0 + 4 * size + 16, y0 + 2 * high, x1 - 14, y0 + 2 * high)
    sheet.text((x0 + 4 * size + x1) / 2, y0 + 2 * high - 28, "tl.sum(x, axis=1,", anchor="middle", size=13, mono=True)
    sheet.text((x0 + 4 * size + x1) / 2, y0 + 2 * high - 10, "keep_dims=True)", anchor="middle", size=13, mono=True)
    for row in range(4):
        fill = GREEN if row < 2 else OUTSIDE
        sheet.cells(x1, y0 + row * high, [fill], ["" if row > 1 else "sum"], width=size, height=high, size=13)
    sheet.text(x1 - 10, y0 + 4 * high + 22, "one number for each", size=13)
    sheet.text(x1 - 10, y0 + 4 * high + 40, "row: a column [4, 1]", size=13)
    return sheet


FIGURES: dict[str, Callable[[], Sheet]] = {
    figure.__name__: figure
    for figure in (
        lesson, vector_add, fused_chain, softmax, matmul, dropout, layer_norm, giou_loss, flash_attention, spmm,
        decode_attention, custom_op, histogram, cross_entropy, kv_cache_update,
    )
}  # fmt: skip
"""Every assignment's figure, by the assignment's id."""


MORE = {"lesson/tiles.svg": tiles}
"""Pictures of other pages than handouts, by their place in assignments/."""


def main() -> None:
    """Write every figure."""
    for place, figure in MORE.items():
        (ASSIGNMENTS / place).write_text(figure().svg(), encoding="utf-8")
    for id, figure in FIGURES.items():
        (ASSIGNMENTS / id / "figure.svg").write_text(figure().svg(), encoding="utf-8")


if __name__ == "__main__":
    main()
