"""The head of a kernel whose programs wait for each other: what each of them does before it can meet another.

It is evaluated for many programs together, which is as legal as one after another; then each goes on by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from gradekit.engine.blocks import begin_block, compile_region, finish_block
from gradekit.engine.frame import PROGRAM, Frame, LaunchContext, Scope
from gradekit.engine.kernel_facts import meets_others
from gradekit.engine.ttir import Function


class Head:
    """The `count` programs with the linear `ids`, which share a head; it is evaluated when the first of them begins."""

    def __init__(self, context: LaunchContext, ids: Any, count: int, arguments: Sequence[Any]) -> None:
        self._context, self._ids, self._count, self._arguments = context, ids, count, arguments
        self._block = context.module.entry.body.blocks[0]
        self._begun = head_length(context.module.entry)
        self._values: Scope | None = None
        self._left, self._made = count, 0

    def go_on(self, position: int) -> None:
        """Runs the program at this position of the ids from the end of the head to its own."""
        if self._values is None:
            self._values = self._evaluated()
        select = torch.tensor([position])
        finish_block(Frame(self._context, 1, Scope(self._values, select)), self._block, self._begun, self._made)
        self._left -= 1
        if not self._left:
            self._values = None

    def _evaluated(self) -> Scope:
        frame = Frame(self._context, self._count)
        frame.values[PROGRAM] = self._ids
        for names in (self._context.module.entry.arguments, self._block.arguments):
            frame.values.update(zip(names, self._arguments, strict=False))
        self._made = begin_block(frame, self._block, self._begun)
        return frame.values


def head_length(function: Function) -> int:
    """How many of a kernel's evaluated steps are its head; 0 where it branches between blocks, or has none."""
    body = function.body
    if len(body.blocks) != 1:
        return 0
    if body.blocks[0].compiled is None:
        compile_region(body, {})
    steps = body.blocks[0].compiled.steps
    return next((number for number, (op, *_) in enumerate(steps) if meets_others(op)), 0)
