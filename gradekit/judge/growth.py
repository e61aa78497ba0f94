"""How what a call costs grows with its sizes, held against the laws that the assignment's domain declares (`grows`):

    memory    bytes that it allocates, results included
    launches  kernels that it launches
    work      bytes that its kernels load and store

Held against a number of bytes, a table of S * S / 8 is small where S is. So a call is made at three sizes, each four
times the one before, and what grows faster than the law at both steps fails: where another kernel takes over, a cost
jumps once. Memory and launches are those of traced calls, also at large sizes, for nothing is run; work is that of runs
at the sizes of the call at hand, where no tensor's values depend on sizes. What is kept from call to call may be as
large as what the largest call allocates.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from gradekit.causes import Cause
from gradekit.domain import EntryDomain, evaluate
from gradekit.inputs.layouts import row_major
from gradekit.inputs.spec import Input
from gradekit.judge.failure import Failure
from gradekit.judge.memory_checks import extra_allocation, line_of
from gradekit.judge.observation import Observed
from gradekit.observations import Counters
from gradekit.program import ITEMSIZE, Allocate, Copy, Program, View, run_steps

TIMES, STEPS = 4, 2
"""Each size is so many times the one before, in so many steps; the largest is a power of two, as tiles are."""
LARGEST = 1 << 15
"""The largest size that is traced, where the domain promises as much."""
ROUNDED_UP = 0.1
"""An exponent may be off by so much: tables are rounded up to tiles."""


class Traced(Protocol):
    """An entry of a submission whose calls can be traced and run: see gradekit.subject.subject."""

    def __call__(self, *args: Any) -> Observed:
        """The run of a call."""

    def gradient(self, *args: Any, upstream: Input, wanted: Sequence[int]) -> Observed:
        """The run of a call and its backward pass."""

    def traced(self, *args: Any, upstream: Input | None = None, wanted: Sequence[int] = ()) -> Program:
        """The program of a call, or of its backward pass."""


def assert_growth(
    domain: EntryDomain, entry: Traced, *args: Any, upstream: Input | None = None, wanted: Sequence[int] = ()
) -> None:
    """Raise if what a call costs grows faster than a law of the domain's `grows`, in any of its sizes.

    Args:
        args: those of a call, as specs; calls of other sizes are made of them.
        upstream, wanted: for the backward pass, as in `gradient`.

    Raises:
        Failure: too-much-memory, with the line of the largest allocation that is no result; too-many-launches;
            too-many-bytes.
        ValueError: the domain declares no law.
        TraceError: a call could not be traced.
    """
    if not domain.grows:
        raise ValueError(f"domain.toml does not say how what {domain.name} costs grows")
    sizes = _sizes(domain, args)
    for name in sorted(size for size in sizes if not domain.sizes[size].only):
        for large in (sizes[name], _largest(domain, sizes, name)):
            top = 1 << large.bit_length() - 1
            calls = [{**sizes, name: top // TIMES**step} for step in range(STEPS, -1, -1)]
            if calls[0][name] >= max(domain.sizes[name].least, 1):
                made = [(_args(domain, args, one), _backward(domain, upstream, wanted, one)) for one in calls]
                _hold(domain, entry, name, calls, made, is_run=large == sizes[name])


def _hold(
    domain: EntryDomain, entry: Traced, name: str, calls: Sequence[Mapping[str, int]], made: Sequence[Any], is_run: bool
) -> None:
    """Raises Failure where a cost of these calls, which differ in the size `name`, breaks its law."""
    programs = [entry.traced(*args, **backward) for args, backward in made]
    memory = [sum(_allocated(program, given(domain, program))) for program in programs]
    costs = {"memory": memory, "launches": [len(list(program.launches())) for program in programs]}
    if is_run and "work" in domain.grows and not any(tensor.range for tensor in domain.tensors):
        costs["work"] = [_moved(entry.gradient(*a, **b) if b else entry(*a)) for a, b in made]
    for what, law in domain.grows.items():
        used, allowed = costs.get(what, []), [float(evaluate(law, one)) for one in calls]
        steps = zip(itertools.pairwise(used), itertools.pairwise(allowed), strict=False)
        if used and all(b > max(a, 1) * (more / less) ** (1 + ROUNDED_UP) for (a, b), (less, more) in steps):
            raise _failure(domain, what, name, calls, used, programs[-1])
    kept = sum(step.nbytes for step in programs[-1].steps[: programs[-1].kept] if isinstance(step, Allocate))
    if "memory" in domain.grows and not is_run and kept > memory[-1]:
        message = (
            f"The call keeps {kept:,} bytes from call to call: more than it allocates where {name} is "
            f"{calls[-1][name]:,}, and more than may be needed."
        )
        raise Failure(Cause.TOO_MUCH_MEMORY, message)


_COSTS = {
    "memory": ("The memory that a call allocates grows", "bytes", Cause.TOO_MUCH_MEMORY),
    "launches": ("The number of kernels that a call launches grows", "launches", Cause.TOO_MANY_LAUNCHES),
    "work": ("What the kernels of a call load and store grows", "bytes", Cause.TOO_MANY_BYTES),
}


def _failure(
    domain: EntryDomain, what: str, name: str, calls: Sequence[Mapping[str, int]], used: Sequence[int], program: Program
) -> Failure:
    (before, after), (few, many), law = [one[name] for one in calls[-2:]], used[-2:], domain.grows[what]
    exponent = math.log(many / max(few, 1)) / math.log(after / before)
    subject, unit, cause = _COSTS[what]
    message = (
        f"{subject} too fast: {few:,} {unit} where {name} is {before}, and {many:,} where it is {after}, as {name} ** "
        f"{exponent:.2f}. It may grow as {law} does."
    )
    facts = {"grows": {"size": name, "exponent": f"{exponent:.2f}", "may": law}}
    line = line_of(extra_allocation(program)) if what == "memory" else None
    return Failure(cause, message, line=line, facts=facts)


def _moved(seen: Observed) -> int:
    return int(seen.counters.bytes_loaded + seen.counters.bytes_stored)


def _allocated(program: Program, others: Collection[int]) -> list[int]:
    """The bytes of each allocation of the call itself, but for those of `others`."""
    steps = run_steps(program.steps[program.kept :])
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
