"""What walks of kernels and of host code have in common: the functions of a source, and nodes that stand in the place
of others in copies of a launch."""

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
class Swap:
    """What stands in the place of a node in each of several `copies` of a launch: `news` has the number of the copy and
    the new node by the old one. Without copies, nothing is swapped. `values` has what new nodes are when the first
    launch comes to them, where that is known."""

    copies: int = 0
    news: dict[ast.AST, list[tuple[int, ast.AST]]] = field(default_factory=dict)
    values: Mapping[ast.AST, Any] = field(default_factory=dict)

    @staticmethod
    def of(
        changes: Sequence[Sequence[tuple[ast.AST, ast.AST]]], values: Mapping[ast.AST, Any] | None = None
    ) -> Swap:
        """A copy for each change, which has old and new nodes."""
        swap = Swap(len(changes), values=values or {})
        for copy, pairs in enumerate(changes):
            for old, new in pairs:
                swap.news.setdefault(old, []).append((copy, new))
        return swap


@dataclass
class Watched:
    """What a walk has seen: the value of each expression, and the names before each statement, when first met."""

    values: dict[ast.AST, Any] = field(default_factory=dict)
    names: dict[ast.AST, Names] = field(default_factory=dict)


class Returned(Exception):
    """A function returns `value`."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value
