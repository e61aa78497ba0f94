"""A change as it is tried on a call: the nodes that it puts in, and what others do the same there."""

from __future__ import annotations

import ast
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from gradekit.interpreter.kinds import ValueKind
from gradekit.interpreter.tile_values import TilePointer
from gradekit.repair.operators.changes import Change
from gradekit.source.kernel import KernelDraft


@dataclass(frozen=True)
class TriedChange:
    """A change, the nodes that it puts in, the kernel in which it is tried, the number of the first statement there
    that it is in, and the kind of its value; others are `alike` if they give the same value in the call that is looked
    at first."""

    change: Change
    new: tuple[ast.AST, ...]
    kernel: str
    place: int
    kind: ValueKind | None = None
    alike: tuple[Change, ...] = ()

    @property
    def pairs(self) -> list[tuple[ast.AST, ast.AST]]:
        """What is there, and what is put in its place."""
        return list(zip((part.node for part in self.change.parts), self.new, strict=True))


def with_alike(tried: TriedChange) -> list[TriedChange]:
    """It, and the others that give the same value."""
    trees = [(change, parsed(change)) for change in tried.alike]
    others = [replace(tried, change=change, new=(tree,), alike=()) for change, tree in trees if tree is not None]
    return [tried, *others]


def kind_of_change(tried: TriedChange) -> int:
    """What the likelier ones have less of."""
    return tried.change.kind


def digest(value: Any) -> Hashable:
    """Equal for equal values."""
    if isinstance(value, TilePointer):
        return value.storage, digest(value.offset)
    if not isinstance(value, Tensor):
        return value
    flat = value.reshape(-1)
    if flat.numel() and bool((flat == flat[0]).all()):
        return flat[0].item()
    return tuple(value.shape), flat.double().numpy().tobytes()


def parsed(change: Change) -> ast.AST | None:
    """The tree of a change's text; None where that is not Python."""
    if change.built is not None:
        return change.built
    try:
        if isinstance(change.node, ast.stmt):
            return ast.parse(change.new).body[0]
        return ast.parse(f"({change.new})", mode="eval").body
    except SyntaxError:
        return None


def place_of(kernel: KernelDraft, node: ast.AST, function: ast.FunctionDef) -> int | None:
    """The number of the statement of a kernel's body that a node is in; None where it is in another function."""
    while node in kernel.parents and kernel.parents[node] is not function:
        node = kernel.parents[node]
    return function.body.index(node) if isinstance(node, ast.stmt) and node in function.body else None
