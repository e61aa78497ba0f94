"""The inspector's record as text."""

from typing import Any

from gradekit.report.inspection import render, render_stage
from gradekit.report.terminal import Look

DOT = {
    "line": 9, "left": "float32", "right": "float32", "result": "float32", "m": 64, "n": 32, "k": 16,
    "precision": "ieee", "in_loop": True,
}
LOAD = {"line": 7, "kind": "load", "dtype": "float16", "itemsize": 2, "elements": 1024}

RECORD: dict[str, Any] = {
    "submission": {"path": "mine.py", "sha256": "", "cells": []},
    "entry": "matmul",
    "inputs": [{"dtype": "float32", "shape": [64, 64], "stride": [64, 1], "offset": 0, "profile": "normal", "seed": 3}, 2],
    "target": "sm_80",
    "card": "A100", "unit": "SM", "matrix_units": "tensor cores",
    "lines": {"7": "x = tl.load(p)", "9": "    acc = tl.dot(x, y, acc)"},
    "kernels": [
        {
            "kernel": "kernel", "label": "BLOCK=64", "registers": 40, "stack": 128, "shared": 512, "warps": 4,
            "occupancy": {"blocks": 12, "warps": 48, "most": 64, "limit": "registers"},
            "dots": [{"dot": DOT, "instructions": {}, "uses": False}],
            "accesses": [{"access": LOAD, "instructions": {"cp.async.cg.shared.global": 2}, "width": 16, "possible": 16, "is_asynchronous": True}],
            "sentences": [{"kind": "no-tensor-cores", "text": "The dot on line 9 does not use tensor cores.", "line": 9}],
        }
    ],
}  # fmt: skip

EXPECTED = """\
mine.py
matmul(float32 [64, 64], 2), compiled for sm_80 (A100), without a card

kernel  BLOCK=64
  a thread    40 registers, 128 bytes spilled
  a block     4 warps, 512 bytes of shared memory
  an SM       holds 12 blocks at once, 48 of 64 warps: registers for more are missing
  line 7      │ x = tl.load(p)
              load   16 bytes at a time, asynchronous, 2 x cp.async.cg.shared.global; float16
  line 9      │ acc = tl.dot(x, y, acc)
              dot    no tensor cores; [64, 16] @ [16, 32] float32 (ieee)
  ! The dot on line 9 does not use tensor cores.
"""


def test_a_kernel_is_its_figures_its_lines_and_what_there_is_to_say() -> None:
    assert render(RECORD, Look(100)) == EXPECTED


def test_lines_of_a_notebook_are_named_by_their_cells() -> None:
    shown = render(RECORD | {"submission": {"path": "n.ipynb", "cells": [[2, 5]]}}, Look(100))
    assert "cell 2, line 3" in shown and "The dot on cell 2, line 5 does not" in shown


def test_a_kernel_that_was_not_compiled_shows_its_sentence_alone() -> None:
    kernel = RECORD["kernels"][0] | {"registers": None, "dots": [], "accesses": []}
    assert "registers" not in render(RECORD | {"kernels": [kernel]}, Look(100))


def test_nothing_from_a_submission_commands_the_terminal() -> None:
    nasty = RECORD | {"lines": {"7": "x = 1  # \x1b[2J"}, "entry": "e\x1b[2J"}
    stage = [{"kernel": "k\x1b[2J", "label": "", "rows": [[1, "row \x1b[2J"]]}]
    assert "\x1b" not in render(nasty) + render_stage(stage, ["\x1b[2J"], RECORD["submission"])


def test_a_stage_stands_under_the_lines_that_it_comes_from() -> None:
    stage = [{"kernel": "k", "label": "", "rows": [[None, "module {"], [2, "a"], [2, "b"], [1, "c"]]}]
    shown = render_stage(stage, ["first", "second"], RECORD["submission"])
    assert shown.splitlines() == [
        "k", "    module {", "  line 2      │ second", "    a", "    b", "  line 1      │ first", "    c",
    ]


def test_a_terminal_without_unicode_gets_ascii() -> None:
    assert render(RECORD, Look(100, unicode=False)).isascii()
