"""Host code run without its kernels: what it compares, and which way it takes, for many calls at little cost.

`explored` gives the origins of a call's numbers, as `CallTracer.follow` does, of a call whose kernels are not
compiled. `way` is a digest of what a call does: the instructions of the submission that it executes, the
kernels that it launches, and which of their arguments are sizes of the inputs. Both are for the grader to learn
where to look, and decide nothing.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gradekit.compat.triton import JITFunction
from gradekit.origins import Explored, LaunchedNames, Origins
from gradekit.program import Argument, View
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


# --- which way a call takes ------------------------------------------------------------------------------------------


def way(tracer: CallTracer, loaded: LoadedModule, entry: str, args: Sequence[Argument]) -> tuple[str, int]:
    """A digest that is equal for calls which do the same, as far as the module's text says, "" for one that fails; and
    how many instructions it has executed. Eight characters each stand for the instructions, for the launches, and for
    the floats that they are given.

    Raises:
        Refusal: there is no such function, or it does not take these arguments.
    """
    function = find_entry(loaded, entry, len(args))
    _, values = tracer._begin(args)
    steps, launches = Counter[tuple[int, int]](), list[Any]()
    quantities = _quantities(args)
    try:
        with tracer.mask, tracer.steps, _unlaunched(launches, quantities), _noting(loaded.path, steps):
            function(*values)
    except Exception:  # noqa: BLE001  (a submission may raise anything)
        return "", steps.total()
    finally:
        tracer.recorder.finish()
    floats = [[value for _, value in others if isinstance(value, float)] for _, _, others in launches]
    others_alone = [(name, known, list(map(_without_float, others))) for name, known, others in launches]
    return _of_instructions(frozenset(steps)) + _digest(others_alone) + _digest(floats), steps.total()


def _without_float(argument: tuple[str, Any]) -> tuple[str, str]:
    """An argument by name, with its value where that is no float."""
    name, value = argument
    return name, "a float" if isinstance(value, float) else repr(value)


@functools.lru_cache(maxsize=256)
def _of_instructions(steps: frozenset[tuple[int, int]]) -> str:
    return _digest(sorted(steps))


def _digest(value: Any) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:8]


def _quantities(args: Sequence[Argument]) -> dict[int, int]:
    """The numbers that a call is given, each with the first place where it stands."""
    found: dict[int, int] = {}
    for arg in args:
        numbers = [math.prod(arg.shape), *arg.shape, *arg.stride] if isinstance(arg, View) else [arg.value]  # type: ignore[union-attr]
        for number in numbers:
            if type(number) is int:
                found.setdefault(number, len(found))
    return found


@contextlib.contextmanager
def _unlaunched(launches: list[Any], quantities: dict[int, int]) -> Iterator[None]:
    """While open, launches are written down, and nothing is compiled."""

    def run(jit: Any, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> None:
        bound = _bound(jit, args, kwargs)
        if callable(grid):
            grid(dict(bound))
        known = [(name, value in quantities) for name, value in bound.items() if type(value) is int and value > 1]
        others = [(n, v) for n, v in bound.items() if isinstance(v, (bool, float, str)) or v is None]
        launches.append((_name(jit), known, others))

    before = JITFunction.run
    JITFunction.run = run
    try:
        yield
    finally:
        JITFunction.run = before


@contextlib.contextmanager
def _noting(path: str, steps: Counter[tuple[int, int]]) -> Iterator[None]:
    """While open, instructions of the file at `path` that are executed are counted in `steps`."""

    def local(frame: Any, event: str, argument: Any) -> Callable[..., Any]:
        if event == "opcode":
            steps[frame.f_code.co_firstlineno, frame.f_lasti] += 1
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
