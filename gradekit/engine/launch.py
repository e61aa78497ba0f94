"""One launch: the programs of a grid, a chunk of them at a time, through a kernel's entry."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from torch import Tensor

# These enter their operations into the registry when they are imported.
from gradekit.engine import libdevice, ops_arith, ops_dot, ops_effects, ops_memory, ops_reduce, ops_tile  # noqa: F401
from gradekit.engine.conditions import Order
from gradekit.engine.control import call
from gradekit.engine.frame import PROGRAM, Frame, LaunchContext
from gradekit.engine.heads import Head, head_length
from gradekit.engine.schedule import chunks, programs_at_once, programs_that_fit
from gradekit.engine.turns import MOST, Turns

PATIENCE = 64
"""Atomics of one program after which another may have to go on: it spins."""


def run_programs(context: LaunchContext, arguments: Sequence[Any]) -> None:
    """Runs every program of the launch; `arguments` are the values that its kernel takes."""
    context.meter.check_bytes(context.facts.peak)
    if context.facts.waits and 1 < math.prod(context.grid) <= MOST:
        _run_in_turns(context, arguments)
    elif context.facts.waits:  # too many to take turns come in order, for each may wait for those before it
        for body in _bodies(context, arguments, Order.ASCENDING):
            body()
    else:
        order = context.conditions.order
        apart = context.facts.mixed and order is not Order.ASCENDING  # in a chunk, one branch runs before the other
        for ids, count in chunks(context.grid, 1 if apart else programs_at_once(context.facts), order):
            _run(context, ids, count, arguments)
    context.memory.finish()


def run_some_programs(context: LaunchContext, arguments: Sequence[Any], programs: Tensor) -> None:
    """As `run_programs`, for those programs alone whose linear ids are given (int64, 1-D)."""
    for ids in programs.split(programs_at_once(context.facts)):
        _run(context, ids, ids.numel(), arguments)
    context.memory.finish()


def _run_in_turns(context: LaunchContext, arguments: Sequence[Any]) -> None:
    """Programs that wait for each other: one after another where they can, or each as far as its next atomic."""
    order = context.conditions.order
    bodies = list(_bodies(context, arguments, order))
    turns = Turns(bodies, patience=0 if order is Order.SHUFFLED else PATIENCE)
    context.pause = turns.pause
    turns.run()


def _bodies(context: LaunchContext, arguments: Sequence[Any], order: Order) -> Iterator[Callable[[], None]]:
    """What runs each program of the launch, one by one but for what they do before they can meet."""
    together = max(programs_that_fit(context.facts), 1) if head_length(context.module.entry) else 1
    for ids, count in chunks(context.grid, together, order):
        if together == 1:
            yield functools.partial(_run, context, ids, 1, arguments)
        else:
            head = Head(context, ids, count, arguments)
            yield from (functools.partial(head.go_on, position) for position in range(count))


def _run(context: LaunchContext, ids: Any, count: int, arguments: Sequence[Any]) -> None:
    frame = Frame(context, count)
    frame.values[PROGRAM] = ids
    call(frame, context.module.entry, arguments)
