"""Programs that wait for each other, each in a thread of its own, one at a time: they take turns at their atomics.

What each of them does before it can meet another is evaluated for many of them together, which is as legal as one after
another; then each goes on by itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch

from gradekit.engine.blocks import begin_block, compile_region, finish_block
from gradekit.engine.frame import PROGRAM, Frame, LaunchContext, Scope
from gradekit.engine.kernel_facts import meets_others
from gradekit.engine.ttir import Function

MOST = 256
"""Programs that may take turns; larger launches run them one after another."""


class _Abandoned(Exception):
    """Another program has failed."""


class Turns:
    """Runs `bodies` one at a time. Whoever calls `pause` more than `patience` times lets the next one go on."""

    def __init__(self, bodies: Sequence[Callable[[], None]], patience: int) -> None:
        self._bodies, self._patience = bodies, patience
        self._batons = [threading.Semaphore(0) for _ in bodies]
        self._over = threading.Semaphore(0)
        self._threads: dict[int, threading.Thread] = {}
        self._alive = list(range(len(bodies)))
        self._now = 0
        self._paused = 0
        self._error: BaseException | None = None

    def run(self) -> None:
        """Runs all bodies to their ends; raises what the first of them raised that failed."""
        self._pass_to(0)
        self._over.acquire()
        for thread in self._threads.values():
            thread.join()
        if self._error is not None:
            raise self._error

    def pause(self) -> None:
        """Called by the body that runs, where another may have to go on before it can."""
        self._paused += 1
        if self._paused <= self._patience or len(self._alive) == 1:
            return
        mine = self._now
        self._pass_to(self._after(mine))
        self._batons[mine].acquire()
        if self._error is not None:
            raise _Abandoned

    def _after(self, number: int) -> int:
        return next((other for other in self._alive if other > number), self._alive[0])

    def _pass_to(self, number: int) -> None:
        self._now, self._paused = number, 0
        if number in self._threads:
            self._batons[number].release()
            return
        self._threads[number] = threading.Thread(target=self._work, args=(number,), daemon=True)
        self._threads[number].start()

    def _work(self, number: int) -> None:
        try:
            self._bodies[number]()
        except _Abandoned:
            pass
        except BaseException as error:  # noqa: BLE001  # `run` raises it, in the thread that asked for this
            self._error = error
        self._alive.remove(number)
        waiting = [other for other in self._alive if self._error is None or other in self._threads]
        if waiting:
            self._pass_to(next((other for other in waiting if other > number), waiting[0]))
        else:
            self._over.release()


# --- what each of them does before it can meet another ----------------------------------------------------------------


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
