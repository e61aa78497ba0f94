"""The small pieces of text are exact, and nothing that commands a terminal gets through them."""

from typing import Any

import pytest

from gradekit.inputs import value_kinds
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
