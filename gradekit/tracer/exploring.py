"""Host code run without its kernels: what it compares, and how long it takes.

`explored` gives the origins of a call's numbers, as `CallTracer.follow` does, of a call whose kernels are not
compiled; `instructions` counts what a call costs. Both are for the grader to learn where to look, and decide nothing.
"""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gradekit.compat.triton import JITFunction
from gradekit.origins import Explored, LaunchedNames, Origins
from gradekit.program import Argument
from gradekit.tracer.loading import LoadedModule
from gradekit.tracer.origin_trace import Following
from gradekit.tracer.sizes import TracedSize
from gradekit.tracer.trace import CallTracer, find_entry

MOST_LAUNCHES = 32
"""Launches of one call that are noted."""


class Exploring(Following):
    """Notes the origins of launches whose kernels are not compiled."""

    def __init__(self, recorder: Any, around: Any) -> None:
        super().__init__(recorder, around)
        self.launched: list[LaunchedNames] = []

    def _run(self, run: Any, jit: Any, args: Any, grid: Any, warmup: bool, kwargs: dict[str, Any]) -> Any:
        bound = _bound(jit, args, kwargs)
        sizes = (*(grid(dict(bound)) if callable(grid) else grid), 1, 1)[:3]
        if len(self.launched) < MOST_LAUNCHES:
            number = self.table.number
            names = tuple((name, number(value)) for name, value in bound.items() if type(value) in (int, TracedSize))
            line = self.recorder.source()
            self.launched.append(
                LaunchedNames(_name(jit), line.line if line else None, tuple(map(number, sizes)), names)
            )


def explored(
    tracer: CallTracer, loaded: LoadedModule, entry: str, args: Sequence[Argument], wanted: Sequence[int]
) -> Explored:
    """What host code compares in a call, up to where it fails without its kernels' results, if it does.

    Raises:
        Refusal: there is no such function, or it does not take these arguments.
    """
    function = find_entry(loaded, entry, len(args))
    inputs, values = tracer._begin(args)
    exploring = Exploring(tracer.recorder, tracer.mask)
    try:
        tracer._followed(exploring, function, args, inputs, values, wanted)
        whole = True
    except Exception:  # noqa: BLE001  (a submission may raise anything, and more where its kernels give nothing)
        whole = False
    finally:
        tracer.steps.around = tracer.mask
        tracer.recorder.finish()
    table = exploring.table
    origins = Origins(tuple(tuple(term) for term in table.terms), tuple(table.conditions))
    return Explored(origins, tuple(exploring.launched), tuple(table.left), whole)


# --- what a call costs -----------------------------------------------------------------------------------------------


def instructions(tracer: CallTracer, loaded: LoadedModule, entry: str, args: Sequence[Argument]) -> int:
    """How many instructions of the submission a call executes, without its kernels; 0 for one that fails.

    Raises:
        Refusal: there is no such function, or it does not take these arguments.
    """
    function = find_entry(loaded, entry, len(args))
    _, values = tracer._begin(args)
    executed = Counter[str]()
    try:
        with tracer.mask, tracer.steps, _unlaunched(), _counting(loaded.path, executed):
            function(*values)
    except Exception:  # noqa: BLE001  (a submission may raise anything)
        return 0
    finally:
        tracer.recorder.finish()
    return executed.total()


@contextlib.contextmanager
def _unlaunched() -> Iterator[None]:
    """While open, nothing is compiled."""

    def run(jit: Any, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> None:
        if callable(grid):
            grid(_bound(jit, args, kwargs))

    before = JITFunction.run
    JITFunction.run = run
    try:
        yield
    finally:
        JITFunction.run = before


@contextlib.contextmanager
def _counting(path: str, executed: Counter[str]) -> Iterator[None]:
    """While open, instructions of the file at `path` that are executed are counted."""

    def local(frame: Any, event: str, argument: Any) -> Callable[..., Any]:
        if event == "opcode":
            executed[path] += 1
        return local

    def entered(frame: Any, event: str, argument: Any) -> Callable[..., Any] | None:
        if frame.f_code.co_filename != path:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return local

    before = sys.gettrace()
    sys.settrace(entered)
    try:
        yield
    finally:
        sys.settrace(before)


def _bound(jit: Any, args: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a launch by name, with the defaults of those that are left out."""
    defaults = {p.name: p.default for p in jit.params if p.has_default}
    return {**defaults, **dict(zip(jit.arg_names, args, strict=False)), **kwargs}


def _name(jit: Any) -> str:
    return str(getattr(jit, "__name__", ""))
