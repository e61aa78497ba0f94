"""The table of mutation operators: each finds the places where one kind of small mistake can be made in a source.

An operator is a function from a ParsedSource to Edits, entered with `@operator(name, needs)`. `needs` says what an
input must have for the mistake to show: it is what an author reads below a mutant that survived.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gradekit.submission.parsed_source import Edit, ParsedSource

Find = Callable[[ParsedSource], Iterator[Edit]]


@dataclass(frozen=True)
class Operator:
    """A kind of edit: its `name`, what an input `needs` to show it, and how its places are found."""

    name: str
    needs: str
    find: Find


OPERATORS: dict[str, Operator] = {}
"""All operators by name, in the order in which they were entered."""


def operator(name: str, needs: str) -> Callable[[Find], Find]:
    """Enter a function into the table."""

    def entered(find: Find) -> Find:
        OPERATORS[name] = Operator(name, needs, find)
        return find

    return entered
