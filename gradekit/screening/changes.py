"""Single changes of a kernel's source: at each expression what a beginner may have meant in its place.

What fits is seen from the values that a walk has met (`Watched`): a name of a kind for another of its kind, a factor
that fits a tile. Sentences name what is there, hints what to try.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from gradekit.mending.kernel_text import KernelDraft
from gradekit.screening.kinds import ValueKind, kind_of
from gradekit.screening.swap import Watched
from gradekit.submission.parsed_source import shown


class ChangeKind(IntEnum):
    """What a change is; of two that are both right, that which comes first here is the likelier mistake."""

    NAME = 0
    FUNCTION = 1
    OPERATOR = 2
    SIDES = 3
    AXIS = 4
    COMPARISON = 5
    NUMBER = 6
    UPDATE = 7
    BRACKET = 8
    OTHER_ROLE = 9
    DROPPED = 10
    WRAPPED = 11
    FACTOR = 12
    TERM = 13


@dataclass(frozen=True)
class Change:
    """A `new` text for a `node` of the function `within`; `sentence` and `hint` as a mend has them. `turn` is when it
    is tried: the likely ones first. `built` is the new text's tree, where that is at hand. `also` are those that are
    made with it, as one thought: their sentences say nothing. `lacks` is the name that it puts to what is there."""

    kind: ChangeKind
    within: str
    node: ast.AST
    new: str
    sentence: str
    hint: str
    turn: int = 0
    built: ast.AST | None = None
    also: tuple[Change, ...] = ()
    lacks: str = ""

    @property
    def parts(self) -> tuple[Change, ...]:
        """It, and those that are made with it."""
        return (self, *self.also)

    @property
    def lines(self) -> tuple[int, ...]:
        """Where it changes something."""
        return tuple(sorted({getattr(part.node, "lineno", 0) for part in self.parts}))


class ChangeSite:
    """One function of a source, as it was walked."""

    def __init__(self, kernel: KernelDraft, watched: Watched) -> None:
        self.kernel, self.source, self.watched = kernel, kernel.source, watched
        self._kinds: dict[ast.AST, ValueKind | None] = {}
        self._names: dict[ast.AST, dict[str, ValueKind]] = {}

    def kind(self, node: ast.AST) -> ValueKind | None:
        """The kind of the value that an expression had when it was met first; None where it was not met."""
        if node not in self._kinds:
            self._kinds[node] = kind_of(self.watched.values.get(node))
        return self._kinds[node]

    def names(self, node: ast.AST) -> dict[str, ValueKind]:
        """The names that are known where an expression stands, with their kinds."""
        statement = self.kernel.statement(node)
        if statement not in self._names:
            known = self.watched.names.get(statement, {})
            self._names[statement] = {
                name: kind for name, value in known.items() if (kind := kind_of(value)) is not None
            }
        return self._names[statement]

    def role(self, name: str) -> str:
        """What a parameter is for: "stride", "constant" or "length"; "" for any other, and for what is computed."""
        kernel = self.kernel
        roles = {"stride": kernel.strides, "constant": kernel.constexprs, "length": kernel.lengths}
        return next((role for role, names in roles.items() if name in names), "")

    def is_steady(self, node: ast.AST) -> bool:
        """Whether an expression stands in no loop."""
        return not any(isinstance(one, (ast.For, ast.While)) for one in self._around(node))

    def _around(self, node: ast.AST) -> Iterator[ast.AST]:
        while node in self.kernel.parents:
            node = self.kernel.parents[node]
            yield node

    def change(
        self,
        kind: ChangeKind,
        node: ast.AST,
        new: str,
        says: tuple[str, str],
        turn: int = 0,
        built: ast.AST | None = None,
    ) -> Change:
        """A change with what it says: a sentence without its "Line n", and a hint."""
        line = getattr(node, "lineno", 0)
        return Change(kind, self.kernel.name, node, new, f"Line {line} {says[0]}", says[1], turn, built)


def context(site: ChangeSite, node: ast.AST) -> str:
    """The piece of source around a node that a sentence shows."""
    best, around = node, site.kernel.parents.get(node)
    while isinstance(around, (ast.expr, ast.keyword)):
        if len(site.source.of(around)) > LONGEST_SHOWN:
            break
        best, around = around, site.kernel.parents.get(around)
    if best is node and isinstance(around, (ast.expr, ast.stmt)):
        best = around
    return shown(site.source.of(best))


LONGEST_SHOWN = 60
