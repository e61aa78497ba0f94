"""The table of operations: TTIR name to the function that evaluates it for all programs of a frame."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradekit.engine.frame import Frame
    from gradekit.engine.ttir import Op

Evaluator = Callable[["Frame", "Op"], Any]
"""Takes a frame and an operation; returns its value, a tuple of values for several results, or None for none."""

OPS: dict[str, Evaluator] = {}


def evaluates(*names: str) -> Callable[[Evaluator], Evaluator]:
    """Enters a function into the table under the names of the operations that it evaluates."""

    def enter(function: Evaluator) -> Evaluator:
        for name in names:
            OPS[name] = function
        return function

    return enter
