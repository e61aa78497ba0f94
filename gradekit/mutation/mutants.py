"""Mutants of a submission: each is its text after one small edit, the same list for the same text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from gradekit.mutation.operators import OPERATORS, Operator
from gradekit.submission.parsed_source import ParsedSource, meaning


@dataclass(frozen=True)
class Mutant:
    """The whole `text` after one edit in `line`; `says` tells the edit, `operator` its kind, and what would show it."""

    operator: Operator
    line: int
    says: str
    text: str

    def __str__(self) -> str:
        return f"line {self.line}, {self.operator.name}: {self.says}"


def mutants(text: str) -> list[Mutant]:
    """All mutants of a text, by operator and then by line; none reads as another does, or as the text itself.

    Raises:
        SyntaxError: the text is not Python.
    """
    found: dict[str, Mutant] = {}
    source, own = ParsedSource(text), meaning(text)
    for operator in OPERATORS.values():
        for edit in operator.find(source):
            changed = source.after(edit)
            same = meaning(changed)
            if same != own and same not in found and source.stays_python(edit):
                found[same] = Mutant(operator, source.line(edit.start), edit.says, changed)
    return list(found.values())


def spread(found: Sequence[Mutant], most: int) -> list[Mutant]:
    """At most `most` of them, of every operator about as many, and each operator's from all over the text."""
    by_operator: dict[str, list[Mutant]] = {}
    for mutant in found:
        by_operator.setdefault(mutant.operator.name, []).append(mutant)
    turns = zip_longest(*(_scattered(group) for group in by_operator.values()))
    chosen = {id(m) for m in [mutant for turn in turns for mutant in turn if mutant is not None][:most]}
    return [mutant for mutant in found if id(mutant) in chosen]


def _scattered(group: Sequence[Mutant]) -> Iterable[Mutant]:
    """The same in an order of which every beginning is spread over the whole: by the reversed bits of the index."""
    bits = max(1, (len(group) - 1).bit_length())
    return [group[i] for i in sorted(range(len(group)), key=lambda i: int(f"{i:0{bits}b}"[::-1], 2))]
