"""A submission's source as rows for a page: coloured tokens, and what checks say of a line below that line.

Pure functions of the text and of what is said of it; Pygments reads the text, and runs none of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pygments.lexers.python import PythonLexer
from pygments.token import STANDARD_TYPES, Token

from gradekit.report.text import clean, counted

MOST_LINES = 2000
"""Lines of source that a page shows: a longer submission is cut, and the page says so."""

_COLOURED = {
    Token.Comment: "comment",
    Token.Keyword: "keyword",
    Token.Literal.Number: "literal",
    Token.Literal.String: "string",
    Token.Name.Decorator: "decorator",
    Token.Name.Function: "defined",
    Token.Name.Class: "defined",
}

Said = Mapping[int, Sequence[Mapping[str, Any]]]
"""By line, the checks that blame it: `number` of the card, `text` to read, `outcome`."""


def rows(source: str, said: Said) -> Iterator[dict[str, Any]]:
    """Each line with its number, its tokens as (colour, text), and what is `said` of it."""
    lines = source.split("\n") if source else []
    for number, tokens in enumerate(_coloured("\n".join(lines[:MOST_LINES])), 1):
        yield {"number": number, "tokens": tokens, "said": list(said.get(number, ()))}
    if len(lines) > MOST_LINES:
        left = f"({counted(len(lines) - MOST_LINES, 'more line')} of the submission: not shown)"
        yield {"number": MOST_LINES + 1, "tokens": [("comment", left)], "said": []}


def _coloured(source: str) -> Iterator[list[tuple[str, str]]]:
    """By line, the tokens with the name of their colour, "" for none."""
    if not source:
        return
    line: list[tuple[str, str]] = []
    for kind, text in PythonLexer(stripnl=False, ensurenl=False).get_tokens(source):
        first, *others = text.split("\n")
        line.append((_colour(kind), clean(first)))
        for other in others:
            yield line
            line = [(_colour(kind), clean(other))]
    yield line


def _colour(kind: Any) -> str:
    while kind in STANDARD_TYPES:
        if kind in _COLOURED:
            return _COLOURED[kind]
        kind = kind.parent
    return ""
