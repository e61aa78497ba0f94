"""One launch: the programs of a grid, a chunk of them at a time, through a kernel's entry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

# These enter their operations into the registry when they are imported.
from gradekit.engine import libdevice, ops_arith, ops_dot, ops_memory, ops_reduce, ops_tile  # noqa: F401
from gradekit.engine.control import call, program_ids
from gradekit.engine.frame import PROGRAM, Frame, LaunchContext
from gradekit.engine.schedule import chunks, peak, programs_at_once


def run_programs(context: LaunchContext, ttir: str, arguments: Sequence[Any]) -> None:
    """Runs every program of the launch; `ttir` is the text of its module, `arguments` are the values that it takes."""
    context.meter.check_bytes(peak(ttir))
    for first, count in chunks(context.grid, programs_at_once(ttir)):
        _run(context, program_ids(first, count), count, arguments)
    context.memory.finish()


def run_some_programs(context: LaunchContext, ttir: str, arguments: Sequence[Any], programs: Tensor) -> None:
    """As `run_programs`, for those programs alone whose linear ids are given (int64, 1-D)."""
    for ids in programs.split(programs_at_once(ttir)):
        _run(context, ids, ids.numel(), arguments)
    context.memory.finish()


def _run(context: LaunchContext, ids: Any, count: int, arguments: Sequence[Any]) -> None:
    frame = Frame(context, count)
    frame.values[PROGRAM] = ids
    call(frame, context.module.entry, arguments)
