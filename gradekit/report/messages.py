"""All fixed sentences that a student may read, as one page of Markdown: what `gradekit messages` prints."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gradekit.causes import Cause
from gradekit.report.sentences import ROOMS, sentences
from gradekit.tracer.hints import HINTS


def page() -> str:
    """The causes of the record with what they mean and what to do, what is said of Triton's and Python's errors, and
    the sentences of the judge and the tutor."""
    causes = ((f"`{cause}`", cause.meaning, cause.hint) for cause in Cause)
    errors = ((f"`{pattern}`", advice) for pattern, advice in HINTS)
    in_code = [(heading, sentences(room)) for room, heading in ROOMS.items()]
    parts = [
        "# Messages",
        "A check that fails says what was seen, the line, and the smallest input that shows it.",
        "## Causes",
        "Where the cause is clear, the record has one of these words, and the report says what to do.",
        re.sub(r"(?m)^\| `(.+?)`", r'| <a id="\1"></a>`\1`', _table(("cause", "what happened", "what to do"), causes)),
        "## Errors of Triton, torch and Python",
        "Where the message of an error matches, the report adds a sentence of its own.",
        _table(("the error's message (a regular expression)", "what to do"), errors),
        "## Sentences and parts of sentences",
        "What these take in, such as a line or a name, is written {1}, {2} and so on, or $name.",
        *(part for heading, rows in in_code for part in (f"### {heading}", _list(rows))),
    ]
    return "\n\n".join(parts) + "\n"


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [heads, ("---",) * len(heads), *(tuple(map(_cell, row)) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _list(rows: Iterable[tuple[str, ...]]) -> str:
    """A point for each sentence, with what goes with it, such as the advice, behind it."""
    return "\n".join(f"- {' / '.join(_escaped(text.strip()) for text in row)}" for row in rows)


def _cell(text: str) -> str:
    """`text` as a cell, which a bar would end."""
    return _escaped(text.replace("\n", " ")).replace("|", "\\|")


def _escaped(text: str) -> str:
    """`text` as Markdown: code between backticks stays as it is."""
    pieces = text.split("`")
    return "`".join(piece if n % 2 else re.sub(r"[\[\]*_<{]", r"\\\g<0>", piece) for n, piece in enumerate(pieces))
