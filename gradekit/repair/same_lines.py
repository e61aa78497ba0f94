"""A mend that is made wherever a line stands: what was copied has its mistake in every copy."""

from __future__ import annotations

from dataclasses import replace

from gradekit.repair.mend import Mend
from gradekit.submission.parsed_source import Edit


def in_same_lines(mend: Mend, text: str) -> Mend | None:
    """The mend, made in every line that reads as those that it edits; None where there is no other."""
    data = text.encode("utf-8")
    copies = [copy for edit in mend.edits for copy in _copies(edit, data) if copy not in mend.edits]
    if not copies:
        return None
    lines = sorted({data.count(b"\n", 0, copy.start) + 1 for copy in copies})
    are = f"Line {lines[0]} is" if len(lines) == 1 else f"Lines {', '.join(map(str, lines))} are"
    return replace(
        mend, edits=(*mend.edits, *copies), sentence=f"{mend.sentence} {are} the same.", kernel="", feeds=None
    )


def _copies(edit: Edit, data: bytes) -> list[Edit]:
    """The edit in all lines that read as its own, but for how far they are indented; none of one of several lines."""
    begin, end = data.rfind(b"\n", 0, edit.start) + 1, data.find(b"\n", edit.start)
    own = data[begin : end if end >= 0 else len(data)]
    inside = edit.start - begin - _indent(own)
    if edit.end > begin + len(own) or not own.strip() or inside < 0:
        return []
    found, at = [], 0
    for line in data.split(b"\n"):
        start = at + _indent(line) + inside
        if line.strip() == own.strip():
            found.append(replace(edit, start=start, end=start + edit.end - edit.start))
        at += len(line) + 1
    return found


def _indent(line: bytes) -> int:
    return len(line) - len(line.lstrip())
