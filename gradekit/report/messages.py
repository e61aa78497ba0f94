"""All fixed sentences that a student may read, as one page of Markdown: what `gradekit messages` prints."""

from __future__ import annotations

from collections.abc import Iterable

from gradekit.causes import Cause
from gradekit.tracer.hints import HINTS


def page() -> str:
    """The causes of the record with what they mean and what to do, and what is said of Triton's and Python's errors."""
    causes = ((f"`{cause}`", cause.meaning, cause.hint) for cause in Cause)
    errors = ((f"`{pattern}`", advice) for pattern, advice in HINTS)
    parts = [
        "# Messages",
        "A check that fails says what was seen, the line, and the smallest input that shows it.",
        "## Causes",
        "Where the cause is clear, the record has one of these words, and the report says what to do.",
        _table(("cause", "what happened", "what to do"), causes),
        "## Errors of Triton, torch and Python",
        "Where the message of an error matches, the report adds a sentence of its own.",
        _table(("the error's message (a regular expression)", "what to do"), errors),
    ]
    return "\n\n".join(parts) + "\n"


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [heads, ("---",) * len(heads), *(tuple(map(_cell, row)) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(text: str) -> str:
    """`text` as a cell: code between backticks stays as it is but for the bar, which ends a cell."""
    pieces = text.replace("\n", " ").split("`")
    plain = [piece if number % 2 else _escaped(piece) for number, piece in enumerate(pieces)]
    return "`".join(plain).replace("|", "\\|")


def _escaped(text: str) -> str:
    for sign in "[]*_<":
        text = text.replace(sign, f"\\{sign}")
    return text
