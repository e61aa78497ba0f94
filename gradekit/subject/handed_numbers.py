"""The numbers that host code hands to kernels and tensors by itself: many of them may have been computed elsewhere.

They come as tensors that the host writes out, and one at a time: as the value of a fill, as an argument of a launch, or
as the place of a view. What follows from the inputs' sizes has few values, or goes on in few different steps.
Data alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from gradekit.engine.executor import Unsupported
from gradekit.findings import Cause
from gradekit.judge.failure import Failure
from gradekit.program import Copy, Fill, Launch, Literal, Program, Scalar, Step, View, every_step

MOST_WRITTEN = 64
"""The most numbers that the host may write out as a tensor, and the most different floating-point numbers that it may
hand on one at a time."""

MOST_PLACES = 1024
"""The most integers that it may hand on one at a time, where each goes another step on than all before it."""

_RANGE = 3
"""Elements of the shortest tensor that can be a range: any two numbers would be one."""


def check(program: Program, entry: str) -> None:
    """Hold what the host hands on in `program` against what a computation needs. A range (torch.arange) tells two.
    Integers may be a schedule of tiles, and single numbers may be anything: a person has to look at them.

    Raises:
        Failure: the host wrote out more than MOST_WRITTEN floating-point numbers.
        Unsupported: or as many integers, or handed on too many one at a time.
    """
    steps = [step for step in every_step(program.steps) if isinstance(step, (Copy, Fill, Launch, Literal))]
    _check_tables([step for step in steps if isinstance(step, Literal)], entry)
    single = {value for step in steps for value in _values(step) if isinstance(value, float)}
    _wait_for_a_person("different numbers", len(single), MOST_WRITTEN, steps)
    _wait_for_a_person("integers", sum(map(_different_steps, _sequences(program, steps))), MOST_PLACES, steps)


def _check_tables(written: Sequence[Literal], entry: str) -> None:
    tables = [step for step in written if not _is_range(step.values)]
    ranges = {(step.values[0], step.values[-1]) for step in written if _is_range(step.values)}
    count = sum(len(step.values) for step in tables) + 2 * len(ranges)
    if count <= MOST_WRITTEN:
        return
    line = written[0].source.line if written[0].source else None
    if any(isinstance(value, float) for step in written for value in step.values):
        message = (
            f"{entry} writes out {count:,} numbers as tensors, where {MOST_WRITTEN} are allowed: results are "
            "computed from the inputs."
        )
        raise Failure(Cause.FORBIDDEN_OP, message, line=line)
    raise Unsupported(f"a table of {count:,} integers that the host writes out", line)


def _is_range(values: Sequence[float]) -> bool:
    if len(values) < _RANGE:
        return False
    step = values[1] - values[0]
    span = max(abs(values[0]), abs(values[-1]), 1.0)
    return all(abs(b - a - step) <= 1e-5 * span for a, b in itertools.pairwise(values))


def _wait_for_a_person(what: str, count: int, most: int, steps: Sequence[Step]) -> None:
    if count > most:
        line = next((step.source.line for step in steps if not isinstance(step, Literal) and step.source), None)
        raise Unsupported(f"{count:,} {what} that the host hands on one at a time", line)


def _values(step: Step) -> Iterator[Any]:
    """The numbers that a step hands on by themselves."""
    if isinstance(step, Fill):
        yield step.value
    elif isinstance(step, Launch):
        yield from (argument.value for argument in _flat(step.args) if isinstance(argument, Scalar))


def _flat(arguments: Iterable[Any]) -> Iterator[Any]:
    for argument in arguments:
        if isinstance(argument, tuple):
            yield from _flat(argument)
        else:
            yield argument


def _sequences(program: Program, steps: Sequence[Step]) -> Iterable[list[int]]:
    """The integers of all steps that came from one place: an argument of a kernel, a fill's value, a view's offset."""
    found: dict[Any, list[int]] = {}
    for step in steps:
        for place, value in _places(program, step):
            if isinstance(value, int):
                found.setdefault(place, []).append(value)
    return found.values()


def _places(program: Program, step: Step) -> Iterator[tuple[Any, Any]]:
    if isinstance(step, Launch):
        name = program.kernels[step.kernel].name
        for position, argument in enumerate(_flat(step.args)):
            yield (name, position), argument.offset if isinstance(argument, View) else getattr(argument, "value", None)
    elif isinstance(step, Fill):
        yield from (("fill", step.value), ("filled", step.target.offset))
    elif isinstance(step, Copy):
        yield from (("from", step.origin.offset), ("to", step.target.offset))


def _different_steps(values: Sequence[int]) -> int:
    return len({b - a for a, b in itertools.pairwise([0, *values])})
