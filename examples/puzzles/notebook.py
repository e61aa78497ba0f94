"""Writes puzzles.ipynb: for each puzzle its text, the kernel to complete, its check, and the steps of a call.

    python notebook.py            in this folder
"""

from __future__ import annotations

import json
from pathlib import Path

from nbformat import v4

from gradekit.assignment import Assignment, discover

HERE = Path(__file__).parent

BEGINNING = """\
# Twelve puzzles

Twelve small kernels of one idea each. Complete the kernel of a cell, run the cell, then run the check below it: without a GPU,
it says whether your kernel is right for every size, and where it is not, the smallest input that shows it and your line. The
cell after that plays one call step by step: what was loaded, what was computed, what was stored, and which lanes the
mask left out.

Tiles are powers of two wide, `tl.load` and `tl.store` take a mask, and every element of a result is written exactly once. All
tensors are contiguous here: element (m, n) of a table with N columns lies at m * N + n. The rest comes one idea at a time."""

SETUP = """\
# Run this cell first.
import gradekit
import torch
import triton
import triton.language as tl"""


def notebook() -> str:
    """The notebook's JSON, the same each time."""
    puzzles = sorted(discover(HERE / "assignments").values(), key=lambda puzzle: puzzle.order or 0)
    cells = [v4.new_markdown_cell(BEGINNING), v4.new_code_cell(SETUP)]
    for puzzle in puzzles:
        cells += [
            v4.new_markdown_cell(puzzle.handout.read_text(encoding="utf-8").replace("# ", "## ", 1).strip()),
            v4.new_code_cell(_starter(puzzle)),
            v4.new_code_cell(f'gradekit.check("{puzzle.id}")'),
            v4.new_code_cell(f'gradekit.view("{puzzle.id}")'),
        ]
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return json.dumps(v4.new_notebook(cells=cells, metadata=metadata), indent=1, ensure_ascii=False) + "\n"


def _starter(puzzle: Assignment) -> str:
    """The starter from its kernel on: what it imports stands in the first cell."""
    text = puzzle.starter.read_text(encoding="utf-8")
    return text[text.index("@triton.jit") :].strip()


if __name__ == "__main__":
    (HERE / "puzzles.ipynb").write_text(notebook(), encoding="utf-8")
