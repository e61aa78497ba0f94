"""The small pieces of text are exact, and nothing that commands a terminal gets through them."""

from typing import Any

import pytest

from gradekit.inputs import value_kinds
from gradekit.report.inspection import render, render_stage
from gradekit.report.terminal import Look
from gradekit.report.text import (
    clean,
    columns,
    counted,
    csv_cell,
    described,
    for_html,
    for_markdown,
    located,
    one_line,
    points,
    seconds,
    shortened,
)


@pytest.mark.parametrize(("value", "text"), [(30.0, "30"), (15 / 7, "2.14"), (0.5, "0.5"), (0, "0"), (100.0, "100")])
def test_points_have_no_digits_to_spare(value: float, text: str) -> None:
    assert points(value) == text


@pytest.mark.parametrize(("value", "text"), [(0.042, "0.04 s"), (3.21, "3.2 s"), (75.4, "75 s")])
def test_seconds_have_the_digits_that_matter(value: float, text: str) -> None:
    assert seconds(value) == text


def test_a_noun_follows_its_number() -> None:
    assert (counted(1, "check"), counted(2, "check")) == ("1 check", "2 checks")


@pytest.mark.parametrize(("given", "text"), [
    ({"dtype": "float32", "shape": [1, 33], "stride": [66, 2]}, "x: float32 [1, 33], strides (66, 2)"),
    ({"dtype": "float32", "shape": [1, 33], "stride": [99, 1]}, "x: float32 [1, 33]"),
    ({"dtype": "float32", "shape": [0, 33], "stride": [9, 9]}, "x: float32 [0, 33]"),
    ({"dtype": "int32", "shape": [5], "stride": [2]}, "x: int32 [5], strides (2,)"),
    ({"dtype": "int32", "shape": [], "stride": []}, "x: int32 []"),
    (
        {"dtype": "float16", "shape": [4], "stride": [1], "offset": 3, "profile": "neg_inf", "seed": 9},
        "x: float16 [4], offset 3, a quarter of the values is -inf, seed 9",
    ),
    (
        {"dtype": "int32", "shape": [3], "profile": "few:0:7"},
        "x: int32 [3], values from 0 to 7, at most three different ones",
    ),
    ({"dtype": "int32", "shape": [3], "profile": "most:2:7"}, "x: int32 [3], all values are 7"),
    ({"dtype": "int32", "shape": [3], "profile": "between:7:7"}, "x: int32 [3], all values are 7"),
    ({"dtype": "float32", "shape": [3, 4], "profile": "boxes"}, "x: float32 [3, 4], values made by boxes"),
    ({"dtype": "int32", "shape": [3], "profile": "crow:2:9:full:7"}, "x: int32 [3], values made by crow"),
    ({"value": 0.5}, "x = 0.5"),
    ({"value": None}, "x = None"),
])
def test_an_input_is_described_by_what_is_special_about_it(given: dict[str, Any], text: str) -> None:
    assert described({"name": "x"} | given) == text


def test_every_kind_of_values_has_words() -> None:
    for kind in (*value_kinds.PROFILES, *value_kinds.WHOLE):
        profile = kind + ":0:9" * (kind in value_kinds.RANGED) + ":9" * (kind == "index")
        said = described({"name": "x", "dtype": "int32", "shape": [3], "profile": profile})
        assert kind == "normal" or f"values {kind}" not in said


@pytest.mark.parametrize(("raw", "safe"), [
    ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
    ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
    ("back\b\rspace", "back\\x08\\rspace"),
    ("\x9b31m", "\\x9b31m"),
    ("a\u202eb", "a\\u202eb"),
    ("\ud800", "\\ud800"),
    ("tab\there", "tab here"),
    ("two\r\nlines", "two\nlines"),
    ("Grüße 你好", "Grüße 你好"),
])
def test_control_characters_are_shown_and_never_obeyed(raw: str, safe: str) -> None:
    assert clean(raw) == safe


@pytest.mark.parametrize("code", [0x061C, 0x200B, 0x200D, 0x2028, 0x2029, 0x2060, 0x2066, 0xFEFF, 0xFFF9, 0xE0041])
def test_what_cannot_be_seen_is_shown(code: int) -> None:
    assert clean(f"a{chr(code)}b") == f"a{chr(code).encode('unicode_escape').decode()}b"


@pytest.mark.parametrize(("raw", "safe"), [
    ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
    ("\"'&", "&quot;&#x27;&amp;"),
    ('x" onload="y', "x&quot; onload=&quot;y"),
    ("\x1b[31m<b>", "\\x1b[31m&lt;b&gt;"),
])
def test_no_browser_sees_a_tag(raw: str, safe: str) -> None:
    assert for_html(raw) == safe


def test_no_markdown_is_left() -> None:
    assert for_markdown("[x](http://a) <b> @all\n# t") == ("\\[x\\]\\(http\\:\\/\\/a\\) \\<b\\> \\@all \\# t")


def test_one_line_is_one_line() -> None:
    assert one_line("  a\n\n  b\tc ") == "a b c"


def test_wide_characters_take_two_columns() -> None:
    assert (columns("ab"), columns("你好"), columns("e\u0301")) == (2, 4, 1)


def test_what_is_too_long_is_cut_to_the_column() -> None:
    assert shortened("abcdef", 6) == "abcdef"
    assert shortened("abcdefg", 6) == "abc..."
    assert columns(shortened("你好你好你好", 7)) == 7


@pytest.mark.parametrize(("text", "named"), [
    (
        "Line 12: stores too far, for line 14 has no mask.",
        "Cell 2, line 2: stores too far, for cell 2, line 4 has no mask.",
    ),
    ("cell 1, line 3 is fine", "cell 1, line 3 is fine"),
    ("deadline 14", "deadline 14"),
])
def test_lines_of_a_notebook_are_named_by_their_cells(text: str, named: str) -> None:
    assert located(text, {"path": "lab.ipynb", "cells": [[1, 2], [2, 11]]}) == named
    assert located(text, {"path": "lab.py", "cells": []}) == text


@pytest.mark.parametrize(("value", "cell"), [
    ("Ada", "Ada"), ("=1+1", "'=1+1"), ("@SUM(A1)", "'@SUM(A1)"), ("-2+3", "'-2+3"), ("-2.5", "-2.5"),
    ("\t=1", "'=1"), ("a\nb", "a b"), ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"), ("\n@x", "'@x"), ("  =x", "'=x"),
    ("\uff1dx", "'\uff1dx"), ("\uff20x", "'\uff20x"), ("\r=x", "\\r=x"),
])
def test_no_cell_is_taken_for_a_formula(value: str, cell: str) -> None:
    assert csv_cell(value) == cell


# --- The inspector's record -------------------------------------------------------------------------------------------


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


def test_lines_of_an_inspected_notebook_are_named_by_their_cells() -> None:
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
