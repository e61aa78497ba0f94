"""The report as a fragment of HTML for the output of a notebook's cell: a pure function of the record.

It is the terminal's report, letter for letter, with its colours: what a student reads in one place is what stands in
the other.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Any

from gradekit.report import terminal

_WIDTH = 100
_STYLES = {
    "1": "font-weight:bold",
    "2": "opacity:.65",
    "31": "color:#c62828",
    "32": "color:#2e7d32",
    "33": "color:#b26a00",
    "35": "color:#8e24aa",
    "36": "color:#00838f",
}
"""What the terminal's codes become; the colours can be read on white and on black."""

_STYLED = re.compile(r"((?:\x1b\[\d+m)+)(.*?)\x1b\[0m", re.DOTALL)
"""Styled text as click writes it: codes, the text, and the reset of all of them."""


def render(record: Mapping[str, Any]) -> str:
    """The report as one `<pre>` element; nothing from the submission reaches the page unescaped."""
    text = html.escape(terminal.render(record, terminal.Look(_WIDTH, colour=True)))
    return f'<pre style="line-height:1.35;white-space:pre-wrap">{_STYLED.sub(_span, text)}</pre>'


def _span(styled: re.Match[str]) -> str:
    styles = ";".join(_STYLES.get(code, "") for code in re.findall(r"\d+", styled[1]))
    return f'<span style="{styles}">{styled[2]}</span>'
