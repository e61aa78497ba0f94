"""A change that makes calls right as a mend."""

from __future__ import annotations

from gradekit.mending.mend import Family, Mend
from gradekit.screening.changes import Change
from gradekit.submission.parsed_source import Edit, ParsedSource

RANK = 6
"""Of a mend by screening: behind those that are made for what a text shows."""


def mend_of(change: Change, source: ParsedSource) -> Mend | None:
    """The change as a mend; None where it would move lines."""
    start, end = source.span(change.node)
    new = _on_as_many_lines(change.new, source.of(change.node).count("\n"))
    if new is None:
        return None
    edit = Edit(start, end, new, change.hint)
    line = getattr(change.node, "lineno", 0)
    return Mend(Family.FORMULA, RANK, line, (edit,), change.sentence, change.hint)


def _on_as_many_lines(text: str, wanted: int) -> str | None:
    missing = wanted - text.count("\n")
    if missing == 0:
        return text
    return f"{text[:-1]}{chr(10) * missing})" if missing > 0 and text.endswith(")") else None
