"""A submission's source as rows for a page: coloured text, and what checks say of a line below that line.

Pure functions of the text and of what is said of it; Pygments reads the text, and runs none of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup
from pygments import highlight
from pygments.formatters.html import HtmlFormatter
from pygments.lexers.python import PythonLexer

from gradekit.report.text import clean, counted

MOST_LINES = 2000
"""Lines of source that a page shows: a longer submission is cut, and the page says so."""

Said = Mapping[int, Sequence[Mapping[str, Any]]]
"""By line, the checks that blame it: `number` of the card, `text` to read, `outcome`."""


def rows(source: str, said: Said) -> Iterator[dict[str, Any]]:
    """Each line with its number, its `text` as HTML (whose classes are Pygments'), and what is `said` of it."""
    lines = source.split("\n") if source else []
    shown = "\n".join(map(clean, lines[:MOST_LINES]))
    coloured = highlight(shown, PythonLexer(stripnl=False, ensurenl=False), HtmlFormatter(nowrap=True)).split("\n")
    for number, text in enumerate(coloured[: len(lines)], 1):
        yield {"number": number, "text": Markup(text), "said": list(said.get(number, ()))}
    if len(lines) > MOST_LINES:
        left = f"({counted(len(lines) - MOST_LINES, 'more line')} of the submission: not shown)"
        yield {"number": MOST_LINES + 1, "text": left, "said": []}
