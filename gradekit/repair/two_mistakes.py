"""Two mistakes at once: a mend that helps in part, and another on top of it."""

from __future__ import annotations

from dataclasses import replace

from gradekit.judge.evidence import Diagnosis
from gradekit.repair.mend import Clues, Mend
from gradekit.submission.parsed_source import Edit


def one_alone(text: str, with_one: str, with_both: str) -> str | None:
    """The text with the second mend alone; None where both change one line. No mend moves a line."""
    lines = []
    for line, one, both in zip(text.split("\n"), with_one.split("\n"), with_both.split("\n"), strict=True):
        if line != one and one != both:
            return None
        lines.append(line if one == both else both)
    return "\n".join(lines)


def diagnosis_of_both(one: Mend, other: Mend, clues: Clues) -> Diagnosis:
    """What is said of both."""
    sentence = f"There are two mistakes. {one.sentence} With that put right, there is another: {_lower(other.sentence)}"
    hint = f"first: {one.hint}; then: {other.hint} (with both changed, this example and others are right)"
    return Diagnosis(one.cause or other.cause or clues.likeliest, sentence, one.line or other.line or None, hint)


def diagnosis_as_one(half: Mend, clues: Clues) -> Diagnosis:
    """What is said of two mends of one line: it takes one change, of which each is a part."""
    sentence = f"Something is wrong in line {half.line}."
    hint = "compare it with the formula: a change of this line makes the result right"
    return Diagnosis(half.cause or clues.likeliest, sentence, half.line or None, hint)


def mend_of_both(text: str, with_both: str, half: Mend) -> Mend:
    """Both mends as one; no mend moves a line."""
    edits, start = [], 0
    for line, both in zip(text.splitlines(keepends=True), with_both.splitlines(keepends=True), strict=True):
        end = start + len(line.encode("utf-8"))
        if line != both:
            edits.append(Edit(start, end, both, half.hint))
        start = end
    return replace(half, edits=tuple(edits))


def _lower(sentence: str) -> str:
    """A sentence behind a colon: without a capital, unless it begins with a name."""
    first, _, rest = sentence.partition(" ")
    return f"{first.lower()} {rest}" if first.istitle() else sentence
