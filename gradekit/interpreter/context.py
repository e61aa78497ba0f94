"""What a walk is given and what it leaves: the source's functions, nodes in the place of others, recorded values."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Names = dict[str, Any]


@dataclass(frozen=True)
class Code:
    """What a kernel may refer to: the jitted `functions` of its source and the plain `constants` of its module."""

    functions: Mapping[str, ast.FunctionDef]
    constants: Mapping[str, Any]


@dataclass
class Substitution:
    """Other nodes in the place of some, in each of several `copies` of a launch.

    Attributes:
        copies: how many; 0 where nothing is substituted.
        news: by the old node, the number of each copy in which another stands there, with that one.
        values: what new nodes are worth in the first launch, where that is known.
    """

    copies: int = 0
    news: dict[ast.AST, list[tuple[int, ast.AST]]] = field(default_factory=dict)
    values: Mapping[ast.AST, Any] = field(default_factory=dict)

    @staticmethod
    def of(
        changes: Sequence[Sequence[tuple[ast.AST, ast.AST]]], values: Mapping[ast.AST, Any] | None = None
    ) -> Substitution:
        """A copy for each change, which is pairs of an old and a new node."""
        substitution = Substitution(len(changes), values=values or {})
        for copy, pairs in enumerate(changes):
            for old, new in pairs:
                substitution.news.setdefault(old, []).append((copy, new))
        return substitution


@dataclass
class Watched:
    """What a walk has recorded: the value of each expression and the names before each statement, when first met."""

    values: dict[ast.AST, Any] = field(default_factory=dict)
    names: dict[ast.AST, Names] = field(default_factory=dict)


class Returned(Exception):
    """A function returns `value`."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value
