"""The table of operations: for each TTIR name, a compiler that turns an operation into an evaluator.

An operation is compiled once and evaluated many times. `compiles` enters a compiler that does all that depends on the
text alone (operand names, types, attributes); where that is not worth the code, `evaluates` enters a function
that looks at the operation each time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradekit.engine.frame import Frame
    from gradekit.engine.ttir import Op

Evaluator = Callable[["Frame"], Any]
"""Evaluates an operation in a frame: its value, None for none; a tuple for several, for regions and for calls."""
Compiler = Callable[["Op"], Evaluator]

OPS: dict[str, Compiler] = {}


def enters(table: dict[str, Any], *names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enters a function into a table, by these names."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        table.update(dict.fromkeys(names, function))
        return function

    return enter


compiles = functools.partial(enters, OPS)  # enters the compiler of the operations of these names


def evaluates(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enters a function of a frame and `op` that evaluates the operations of these names."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        OPS.update(dict.fromkeys(names, lambda op: functools.partial(function, op=op)))
        return function

    return enter
