"""The table of operations: TTIR name to what makes a `Step` of an operation, which evaluates it wherever it is met again.

An operation is read once and evaluated many times. Where making the step does all that depends on the text alone (its
operands' names, its types and attributes), `prepares` enters the maker; where that is not worth the words, `evaluates`
enters a function that looks at the operation each time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradekit.engine.frame import Frame
    from gradekit.engine.ttir import Op

Step = Callable[["Frame"], Any]
"""Evaluates one operation in a frame: its value, a tuple of values for several results, or None for none."""
Maker = Callable[["Op"], Step]
Evaluator = Callable[["Frame", "Op"], Any]
"""Evaluates any operation of its name; where there is one result it may be a tuple of one."""

OPS: dict[str, Maker] = {}


def prepares(*names: str) -> Callable[[Maker], Maker]:
    """Enters the maker of steps for the operations of these names."""

    def enter(maker: Maker) -> Maker:
        OPS.update(dict.fromkeys(names, maker))
        return maker

    return enter


def evaluates(*names: str) -> Callable[[Evaluator], Evaluator]:
    """Enters a function that evaluates the operations of these names."""

    def enter(function: Evaluator) -> Evaluator:
        OPS.update(dict.fromkeys(names, _looking_each_time(function)))
        return function

    return enter


def _looking_each_time(function: Evaluator) -> Maker:
    def prepare(op: Op) -> Step:
        if len(op.results) != 1:
            return lambda frame: function(frame, op)

        def step(frame: Frame) -> Any:
            value = function(frame, op)
            return value[0] if isinstance(value, tuple) else value

        return step

    return prepare
