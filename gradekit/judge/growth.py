"""How the memory that a call allocates grows with its sizes, held against what the assignment's domain declares.

Held against a number of bytes, a table of S * S / 8 is small where S is. So calls are traced at two sizes, and what
they allocate is held against the law: at those of the call at hand, and at large ones, which takes no memory, for
nothing is run.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from gradekit.causes import Cause
from gradekit.domain import EntryDomain, evaluate, names_in
from gradekit.inputs.layouts import row_major
from gradekit.inputs.spec import Input
from gradekit.judge.failure import Failure
from gradekit.judge.memory_checks import extra_allocation, line_of
from gradekit.observations import Counters
from gradekit.program import ITEMSIZE, Allocate, Copy, Program, View, run_steps

TIMES = 4
"""The larger of two sizes is so many times the smaller one."""
LARGEST = 1 << 15
"""The largest size that is traced, where the domain promises as much."""
ROUNDED_UP = 0.1
"""An exponent may be off by so much: tables are rounded up to tiles."""


class Traced(Protocol):
    """An entry of a submission whose calls can be traced: see gradekit.subject.entry."""

    def traced(self, *args: Any, upstream: Input | None = None, wanted: Sequence[int] = ()) -> Program:
        """The program of a call, or of its backward pass."""


def assert_growth(
    domain: EntryDomain, entry: Traced, *args: Any, upstream: Input | None = None, wanted: Sequence[int] = ()
) -> None:
    """Raise if what a call allocates grows faster than the domain's `memory`, in any size that stands there.

    Args:
        args: those of a call, as specs; calls of other sizes are made of them.
        upstream, wanted: for the backward pass, as in `gradient`.

    Raises:
        Failure: too-much-memory, with the line of the largest allocation that is no result.
        ValueError: the domain declares no `memory`.
        TraceError: a call could not be traced.
    """
    if domain.memory is None:
        raise ValueError(f"domain.toml does not say how the memory of {domain.name} grows")
    sizes = _sizes(domain, args)
    for name in sorted(size for size in names_in(domain.memory) if not domain.sizes[size].only):
        for large in (sizes[name], _largest(domain, sizes, name)):
            two = [{**sizes, name: max(large // TIMES, domain.sizes[name].least)}, {**sizes, name: large}]
            programs = [
                entry.traced(*_args(domain, args, one), **_backward(domain, upstream, wanted, one)) for one in two
            ]
            used = [max(sum(_allocated(program, given(domain, program))), 1) for program in programs]
            law = [float(evaluate(domain.memory, one)) for one in two]
            if used[1] > used[0] * (law[1] / law[0]) ** (1 + ROUNDED_UP):
                raise _failure(domain, name, two, used, programs[1])


def _failure(
    domain: EntryDomain, name: str, two: Sequence[Mapping[str, int]], used: Sequence[int], program: Program
) -> Failure:
    exponent = math.log(used[1] / used[0]) / math.log(two[1][name] / two[0][name])
    message = (
        f"The memory that a call allocates grows too fast: {used[0]:,} bytes where {name} is {two[0][name]}, and "
        f"{used[1]:,} where it is {two[1][name]}, as {name} ** {exponent:.2f}. It may grow as {domain.memory} does."
    )
    facts = {"grows": {"size": name, "exponent": f"{exponent:.2f}", "may": domain.memory}}
    return Failure(Cause.TOO_MUCH_MEMORY, message, line=line_of(extra_allocation(program)), facts=facts)


def _allocated(program: Program, others: Collection[int]) -> list[int]:
    """The bytes of each allocation, but for those of `others`."""
    steps = run_steps(program.steps)
    return [step.nbytes for step in steps if isinstance(step, Allocate) and step.storage not in others]


def given(domain: EntryDomain, program: Program) -> set[int]:
    """The storages of arguments that the call may write (gradekit.subject.written): the call did not allocate them."""
    results = zip(domain.results, program.results, strict=False)
    return {view.storage for result, view in results if result.argument and isinstance(view, View)}


def own_counters(domain: EntryDomain, program: Program, counters: Counters) -> Counters:
    """What a call has cost, without the memory of arguments that it may write, and what put their values there."""
    others = given(domain, program)
    every, own = _allocated(program, ()), _allocated(program, others)
    copies = [step.target for step in program.steps if isinstance(step, Copy) and step.source is None]
    moved = sum(view.numel * ITEMSIZE[view.dtype] for view in copies if view.storage in others)
    return replace(
        counters,
        bytes_allocated=counters.bytes_allocated - (sum(every) - sum(own)),
        allocations=counters.allocations - (len(every) - len(own)),
        bytes_loaded=counters.bytes_loaded and counters.bytes_loaded - moved,
        bytes_stored=counters.bytes_stored and counters.bytes_stored - moved,
    )


def _largest(domain: EntryDomain, sizes: Mapping[str, int], name: str) -> int:
    """As large as this size may be beside the others."""
    large = min(domain.sizes[name].most, LARGEST)
    while large > sizes[name] and not domain.within({**sizes, name: large}):
        large //= 2
    return large


def _sizes(domain: EntryDomain, args: Sequence[Any]) -> dict[str, int]:
    """The sizes of a call, by name."""
    named: dict[str, int] = {}
    for tensor, arg in zip(domain.arguments, args, strict=False):
        if isinstance(arg, Input):
            named |= {part: size for part, size in zip(tensor.shape, arg.shape, strict=True) if part in domain.sizes}  # type: ignore[union-attr]
    return named


def _args(domain: EntryDomain, args: Sequence[Any], sizes: Mapping[str, int]) -> list[Any]:
    given = zip(domain.arguments, args, strict=False)
    return [_spec(arg, tensor.shape, sizes) if isinstance(arg, Input) else arg for tensor, arg in given]  # type: ignore[union-attr]


def _backward(
    domain: EntryDomain, upstream: Input | None, wanted: Sequence[int], sizes: Mapping[str, int]
) -> dict[str, Any]:
    if upstream is None:
        return {}
    return {"upstream": _spec(upstream, domain.results[0].shape, sizes), "wanted": wanted}


def _spec(spec: Input, shape: Sequence[str], sizes: Mapping[str, int]) -> Input:
    """The same tensor of other sizes, contiguous."""
    large = tuple(int(evaluate(part, sizes)) for part in shape)
    return replace(spec, shape=large, stride=row_major(large), offset=0, base=0)
