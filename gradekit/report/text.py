"""Small pure pieces of text that every rendering needs: points, places, inputs, and what may safely be shown.

Parts of a record come from the student's file and program. They reach a terminal only through `clean`, a page through
`for_html`, a table through `csv_cell`, Markdown through `for_markdown`.
"""

import html
import re
import textwrap
import unicodedata
from collections.abc import Mapping
from typing import Any

from gradekit.inputs.in_words import in_words
from gradekit.inputs.layouts import is_row_major
from gradekit.report.translation import say
from gradekit.submission import place

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
"""Control characters but newline and tab, marks that reverse the reading direction or cannot be seen, other systems'
line ends, and half characters."""


def clean(text: str) -> str:
    """`text` with tabs as spaces and control characters as escapes, so that it commands no terminal."""
    lines = text.replace("\r\n", "\n").expandtabs(4)
    return _UNSAFE.sub(lambda match: match.group().encode("unicode_escape").decode(), lines)


def for_html(text: str) -> str:
    """`text` cleaned, to stand in an element or in a quoted attribute of an HTML page: a browser sees no tag in it."""
    return html.escape(clean(text), quote=True)


_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~&:@/])")


def for_markdown(text: str) -> str:
    """`text` on one line, to stand in Markdown: no link, image, mention or HTML in it."""
    return _MARKDOWN.sub(r"\\\1", one_line(text))


def one_line(text: str) -> str:
    """`text` cleaned, on one line."""
    return " ".join(clean(text).split())


def points(value: float) -> str:
    """30.0 -> "30", 2.142857 -> "2.14"."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def seconds(value: float) -> str:
    """0.042 -> "0.04 s", 3.21 -> "3.2 s", 75 -> "75 s"."""
    digits = 2 if value < 1 else 1 if value < 10 else 0
    return f"{value:.{digits}f} s"


def counted(number: int, noun: str) -> str:
    """(1, "check") -> "1 check", (2, "check") -> "2 checks"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def scored(earned: float, possible: float, pending: float) -> str:
    """ "56 of 100 points, 20 pending"."""
    return f"{points(earned)} of {points(possible)} points" + (f", {points(pending)} pending" if pending else "")


def described(given: Mapping[str, Any]) -> str:
    """An input of a counterexample in one line, what is ordinary left out: "x: float32 [1, 33], strides (66, 2)"."""
    name = one_line(str(given["name"]))
    name = say(name) if " " in name else name  # a parameter has no blanks, and keeps its name
    if "dtype" not in given:
        return f"{name} = {one_line(str(given.get('value')))}"
    shape, stride = list(given["shape"]), given.get("stride")
    parts = [f"{one_line(given['dtype'])} {shape}"]
    if stride is not None and not is_row_major(shape, stride):
        parts.append(f"strides ({', '.join(map(str, stride))}{',' * (len(stride) == 1)})")
    parts += [f"offset {given['offset']}"] if given.get("offset") else []
    parts += [say(in_words(one_line(given["profile"])))] if given.get("profile", "normal") != "normal" else []
    parts += [f"seed {given['seed']}"] if given.get("seed") else []
    parts += [say(f"in a shared storage of {given['base']}")] if given.get("base") else []
    return f"{name}: {', '.join(parts)}"


_LINE = re.compile(r"(?<!, )\b(?P<word>[Ll]ine|Zeile) (?P<number>\d+)\b|第 (?P<other>\d+) 行")


def located(text: str, submission: Mapping[str, Any]) -> str:
    """`text` in the reader's language, with a notebook's cells: "line 14 loads" -> "cell 2, line 4 loads"."""
    if not submission.get("cells"):
        return say(text)

    def name(match: re.Match[str]) -> str:
        where = say(place(submission, int(match["number"] or match["other"])))
        return where.capitalize() if match["word"] == "Line" else where

    return _LINE.sub(name, say(text))


def wrapped(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    """Lines of at most `width` columns, beginning with `first` and `rest`; they may end between wide characters."""
    if columns(text) == len(text):
        return textwrap.wrap(text, width, initial_indent=first, subsequent_indent=rest)
    lines, line = [], first
    for piece in _PIECE.findall(text):
        if columns(line + piece) > width and line not in (first, rest):
            lines.append(line)
            line = rest
        line += piece if line not in (first, rest) else piece.lstrip()
    return [*lines, line]


_WIDE = "\u2e80-\u9fff\uf900-\ufaff\uff00-\uff60"
_PIECE = re.compile(rf"\s*(?:[{_WIDE}][，。：；？！）、」]*|[^\s{_WIDE}]+[，。：；？！）、」]*)")
"""A word, or one wide character with the marks that must not begin a line."""


def columns(text: str) -> int:
    """The columns that `text` takes in a terminal: two for a wide character, none for a combining one."""
    return sum(_columns(character) for character in text)


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def shortened(text: str, width: int, more: str = "...") -> str:
    """`text` cut to at most `width` columns, with `more` where something is missing."""
    if columns(text) <= width:
        return text
    kept = ""
    for character in text:
        if columns(kept + character + more) > width:
            break
        kept += character
    return kept + more


_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")  # and as East Asian keyboards write them


def csv_cell(value: str) -> str:
    """`value` on one line, as a cell that no spreadsheet takes for a formula: those get a leading apostrophe."""
    text = one_line(value)
    is_formula = text.startswith(_FORMULA) and not re.fullmatch(r"[+-]?\d+(\.\d+)?", text)
    return f"'{text}" if is_formula else text
