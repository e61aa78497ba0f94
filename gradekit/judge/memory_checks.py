"""Claims about memory: what a run touched, launched, allocated and moved, and how that grows with sizes.

Held against a number of bytes, a table of S * S / 8 is small where S is. So for `grows` of a domain a call is made at
three sizes, each four times the one before, and what grows faster than the law at both steps fails: where another
kernel takes over, a cost jumps once. Memory and launches are those of traced calls, also at large sizes; work is that
of runs at the sizes of the call at hand. What is kept from call to call may be as large as what the largest allocates.
"""

import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gradekit.causes import IN_MEMORY, Cause
from gradekit.domain import EntryDomain, ScalarDomain, Tensor, evaluate
from gradekit.findings import Finding
from gradekit.inputs.layouts import row_major
from gradekit.inputs.spec import Input
from gradekit.judge.contents import nbytes
from gradekit.judge.failure import Failure, sentence
from gradekit.observations import Counters
from gradekit.program import ITEMSIZE, Allocate, Copy, Program, Step, View, run_steps

_RANK = {cause: rank for rank, cause in enumerate(Cause) if cause.traits & IN_MEMORY}
"""The findings that fail a memory check, with the order in which they are shown."""


Observed = Any
"""One run (gradekit.subject.runs.Observation): its `inputs`, `results`, `findings`, `counters` and `program`. With
`substitute`, it makes of the expected results those that are judged in place of its own: see trivial.py."""

Traced = Any  # an entry of a submission whose calls can be traced and run (gradekit.subject.subject.Entry)


def assert_memory_clean(observation: Observed) -> None:
    """Raise Failure, with the gravest finding, if the run touched memory that it must not, or left some unwritten."""
    _assert_watched(observation)
    found = sorted((f for f in observation.findings if f.cause in _RANK), key=lambda f: _RANK[f.cause])
    if found:
        worst = found[0]
        raise Failure(worst.cause, sentence(worst), line=worst.line, facts={"findings": [_facts(f) for f in found]})


def gravest(causes: Iterable[Cause]) -> Cause | None:
    """The one among `causes` that a memory check shows first; None where none of them fails it."""
    return min((cause for cause in causes if cause in _RANK), key=lambda cause: _RANK[cause], default=None)


def assert_inputs_unmodified(observation: Observed) -> None:
    """Raise if a kernel or the host wrote to an input (Failure: input-modified), or a result lies in memory of an input
    (unchanged-input) or of an earlier call (kept-result)."""
    _assert_watched(observation)
    for finding in observation.findings:
        if finding.cause is Cause.INPUT_MODIFIED:
            raise Failure(finding.cause, sentence(finding), line=finding.line, facts={"findings": [_facts(finding)]})
    program = observation.program
    inputs = {view.storage for view in program.inputs} if program else set()
    if program and any(isinstance(r, View) and r.storage in inputs for r in program.results):
        raise Failure(Cause.UNCHANGED_INPUT, "The result lies in the memory of an input; it must be a new tensor.")
    if program:
        assert_result_is_new(program, gradients=bool(getattr(observation, "wanted", ())))


def assert_result_is_new(program: Program, gradients: bool = False) -> None:
    """Raise Failure (kept-result) if a result of `program` lies in memory that was there before, or has less memory
    than elements. `gradients` may be expanded: autograd copies those before it accumulates into them."""
    if not gradients and any(isinstance(result, View) and result.expanded for result in program.results):
        message = (
            "The result is an expanded view: several of its elements lie at one place in memory, and whoever writes to "
            "one changes the others. It must be a new tensor with a place for each element."
        )
        raise Failure(Cause.KEPT_RESULT, message)
    if program.results_kept:
        message = (
            "The result lies in memory that was allocated before the call and kept: the next call overwrites a result "
            "that the caller still has. It must be a new tensor."
        )
        raise Failure(Cause.KEPT_RESULT, message)


def _assert_watched(observation: Observed) -> None:
    """Raise where a card alone could run it, so that nobody watched the memory: only what it did wrong is known."""
    unknown = getattr(observation, "unknown", None)
    if unknown is not None and not observation.findings:
        raise unknown.with_traceback(None)


def _facts(finding: Finding) -> dict[str, Any]:
    as_they_are = {name: getattr(finding, name) for name in ("line", "kernel", "launch", "tensor")}
    lists = {name: [list(one) for one in getattr(finding, name)] for name in ("elements", "programs")}
    size = finding.facts.get("elements_in_storage")
    return {"cause": str(finding.cause), **as_they_are, **lists, "count": finding.count, "size": size}


def assert_launches(observation: Observed, at_most: int = 1) -> None:
    """Raise Failure (too-many-launches, with the line of the first too many) for more than `at_most` kernels."""
    launches = observation.counters.launches
    if launches <= at_most:
        return
    kernels = "kernel" if at_most == 1 else "kernels"
    made = observation.program.launches() if observation.program else ()
    line = line_of(next(itertools.islice(made, at_most, None), None))
    message = f"The call launches {launches} kernels, and may launch {at_most} {kernels} at most."
    facts = {"launches": launches, "at_most": at_most}
    raise Failure(Cause.TOO_MANY_LAUNCHES, message, line=line, facts=facts)


def assert_allocates(
    observation: Observed, *, only_the_result: bool = True, at_most_bytes: int | None = None,
    copies_of_views: bool = False,
) -> None:  # fmt: skip
    """Raise if the host allocated more than its results take, or where given than `at_most_bytes`, results included;
    with `copies_of_views`, also what a copy takes of each input that is not contiguous.

    Results may always be allocated: inputs that are made for a submission lie beyond the sizes that a test's author had
    in mind, and there a bound in bytes may be less than the results alone. Views may come to any check: host code that
    asks for strides is given some, whatever layouts the check draws. Raises Failure (too-much-memory, with the line of
    the largest allocation that is no result).
    """
    if at_most_bytes is None and not only_the_result:
        raise ValueError("say at_most_bytes where more than the result may be allocated")
    views = [one for one in observation.inputs if isinstance(one, Input) and not one.is_contiguous]
    allowed = max(nbytes(observation.results), at_most_bytes or 0) + copies_of_views * sum(one.nbytes for one in views)
    used = observation.counters.bytes_allocated
    if used <= allowed:
        return
    raise Failure(
        Cause.TOO_MUCH_MEMORY,
        f"The call allocates {_bytes(used)}, and may allocate {_bytes(allowed)}"
        + (" at most." if at_most_bytes is not None else ": the result and nothing else."),
        line=line_of(extra_allocation(observation.program)), facts={"bytes_allocated": used, "at_most": allowed},
    )


def assert_bytes_moved(observation: Observed, *, at_most: float | None = None, times_least: float = 1.0) -> None:
    """Raise Failure (too-many-bytes) if kernels moved more than `at_most` bytes, or `times_least` x `least_bytes`."""
    _assert_watched(observation)
    allowed = times_least * least_bytes(observation) if at_most is None else at_most
    counters = observation.counters
    moved = counters.bytes_loaded + counters.bytes_stored
    if moved > allowed:
        message = (
            f"The call loads {_bytes(counters.bytes_loaded)} and stores {_bytes(counters.bytes_stored)}, and may move "
            f"{_bytes(allowed)} together."
        )
        line = _line_of_copies(observation.program, moved - allowed)
        raise Failure(
            Cause.TOO_MANY_BYTES, message + (f" In line {line} the host copies a tensor." if line else ""), line=line,
            facts={"bytes_loaded": counters.bytes_loaded, "bytes_stored": counters.bytes_stored, "at_most": allowed},
        )


def _line_of_copies(program: Program | None, too_many: float) -> int | None:
    """The line of the largest copy that the host makes, where without copies so many bytes fewer are moved."""
    steps = run_steps(program.steps) if program is not None else ()
    copies = [one for one in steps if isinstance(one, Copy) and one.source is not None]
    moves = lambda one: sum(view.numel * ITEMSIZE[view.dtype] for view in (one.origin, one.target))
    return line_of(max(copies, key=moves)) if sum(map(moves, copies)) >= too_many and copies else None


def least_bytes(observation: Observed) -> int:
    """The traffic of reading every element of every input once and writing every element of every result once."""
    return sum(getattr(i, "nbytes", 0) for i in observation.inputs) + nbytes(observation.results)


def _bytes(count: float) -> str:
    for unit, size in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= 10 * size:
            return f"{count / size:.1f} {unit}"
    return f"{count:.0f} bytes"


def extra_allocation(program: Program | None) -> Allocate | None:
    """The largest allocation that is no result."""
    if program is None:
        return None
    results = {r.storage for r in program.results if isinstance(r, View)}
    extra = [a for a in run_steps(program.steps) if isinstance(a, Allocate) and a.storage not in results]
    return max(extra, key=lambda allocation: allocation.nbytes, default=None)


def line_of(step: Step | None) -> int | None:
    """The submission's line of a step."""
    return step.source.line if step and step.source else None


TIMES, STEPS = 4, 2
"""Each size is so many times the one before, in so many steps; the largest is a power of two, as tiles are."""
LARGEST = 1 << 15  # the largest size that is traced, where the domain promises as much
ROUNDED_UP = 0.1  # an exponent may be off by so much: tables are rounded up to tiles
BOUNDED = 0.5
"""Or by so much between the sizes of a check's own calls, half way to the next power: tiles that become narrower as
rows become longer let a table of parts grow, up to an end that lies beyond."""


def assert_growth(
    domain: EntryDomain, entry: Traced, *args: Any, upstream: Input | None = None, wanted: Sequence[int] = ()
) -> None:
    """Raise if what a call with `args` costs grows faster than a law of the domain's `grows`, in any of its sizes;
    `upstream` and `wanted` are for the backward pass, as in `gradient`. Raises Failure (too-much-memory, with the line
    of the largest allocation that is no result, too-many-launches or too-many-bytes), ValueError where the domain
    declares no law, and TraceError where a call could not be traced."""
    if not domain.grows:
        raise ValueError(f"domain.toml does not say how what {domain.name} costs grows")
    sizes, entry = sizes_of(domain, args), entry.on_one_gpu()
    if "bytes" in domain.grows:
        _hold_bytes(domain, entry, args, sizes)
    for name in sorted(size for size in sizes if domain.grows.keys() - {"bytes"} and not domain.sizes[size].only):
        for large in (sizes[name], _largest(domain, sizes, name)):
            top = 1 << large.bit_length() - 1
            calls = [{**sizes, name: top // TIMES**step} for step in range(STEPS, -1, -1)]
            if calls[0][name] >= max(domain.sizes[name].least, 1):
                made = [
                    (_args(domain, args, one),
                     {"upstream": _spec(upstream, domain.results[0].shape, one), "wanted": wanted} if upstream else {})
                    for one in calls
                ]  # fmt: skip
                _hold(domain, entry, name, calls, made, is_run=large == sizes[name])


def _hold_bytes(domain: EntryDomain, entry: Traced, args: Sequence[Any], sizes: Mapping[str, int]) -> None:
    """Raises Failure where a call allocates too much that has the largest size that is promised, or all of them, or the
    smallest, one of any length: a bound that is a sum is broken where neither part is large beside the other, or both
    are small."""
    most, least = ({name: getattr(domain.sizes[name], end) for name in sizes} for end in ("most", "least"))
    each = [(name, TIMES**n) for name in most for n in range(most[name].bit_length() // 2)]
    steps = [{**others, name: size} for others in (least, most) for name, size in each]
    for larger in [*({name: size} for name, size in most.items()), least, most, *steps]:
        one = {**sizes, **larger}
        if not domain.within(one):
            continue
        program = entry.traced(*_args(domain, args, one))
        used, allowed = sum(_allocated(program, given(domain, program))), evaluate(domain.grows["bytes"], one)
        if used > allowed:
            told = ", ".join(f"{name} = {size:,}" for name, size in one.items())
            message = f"With {told}, the call allocates {used:,} bytes. It may allocate {int(allowed):,}."
            raise Failure(Cause.TOO_MUCH_MEMORY, message, line=line_of(extra_allocation(program)))


def _hold(
    domain: EntryDomain, entry: Traced, name: str, calls: Sequence[Mapping[str, int]], made: Sequence[Any], is_run: bool
) -> None:
    """Raises Failure where a cost of these calls, which differ in the size `name`, breaks its law."""
    programs = [entry.traced(*args, **backward) for args, backward in made]
    memory = [sum(_allocated(program, given(domain, program))) for program in programs]
    costs = {"memory": memory, "launches": [len(list(program.launches())) for program in programs]}
    if is_run and "work" in domain.grows and not any(tensor.range for tensor in domain.tensors):
        seen = [entry.gradient(*args, **backward) if backward else entry(*args) for args, backward in made]
        costs["work"] = [int(one.counters.bytes_loaded + one.counters.bytes_stored) for one in seen]
    for what, law in domain.grows.items():
        used, allowed = costs.get(what, []), [float(evaluate(law, one)) for one in calls]
        steps = zip(itertools.pairwise(used), itertools.pairwise(allowed), strict=False)
        longer = calls[-1][name] / calls[0][name]
        if not used or is_run and used[-1] <= max(used[0], 1) * allowed[-1] / allowed[0] * longer**BOUNDED:
            continue
        if all(b > max(a, 1) * (more / less) ** (1 + ROUNDED_UP) for (a, b), (less, more) in steps):
            raise _failure(domain, what, name, calls, used, programs[-1])
    kept = sum(step.nbytes for step in programs[-1].kept_allocations)
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
        counters, bytes_allocated=counters.bytes_allocated - (sum(every) - sum(own)),
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


def sizes_of(domain: EntryDomain, args: Sequence[Any]) -> dict[str, int]:
    """The sizes of a call, by name: those that stand in a shape by themselves, or are an argument. `args` may leave out
    the last ones, and end with what backward is given."""
    named: dict[str, int] = {}
    for argument, arg in zip(domain.arguments, args, strict=False):
        if isinstance(arg, Input) and isinstance(argument, ScalarDomain):
            break
        given = (argument.shape, arg.shape) if isinstance(arg, Input) else (_computed(argument), (arg,))  # type: ignore[union-attr]
        named |= {part: size for part, size in zip(*given, strict=False) if part in domain.sizes}
    return named


def _computed(argument: Tensor | ScalarDomain) -> Sequence[str]:
    """What a scalar is computed by; nothing where that is not always the same."""
    is_one = isinstance(argument, ScalarDomain) and argument.is_computed and len(argument.values) == 1
    return argument.values if is_one else ()


def _args(domain: EntryDomain, args: Sequence[Any], sizes: Mapping[str, int]) -> list[Any]:
    made = []
    for argument, arg in zip(domain.arguments, args, strict=False):
        if isinstance(arg, Input):
            made.append(_spec(arg, argument.shape, sizes))  # type: ignore[union-attr]
        else:
            made.append(next((type(arg)(evaluate(value, sizes)) for value in _computed(argument)), arg))
    return made


def _spec(spec: Input, shape: Sequence[str], sizes: Mapping[str, int]) -> Input:
    """The tensor in other sizes, contiguous, of one seed: a call that another example has made is not made again."""
    large = tuple(int(evaluate(part, sizes)) for part in shape)
    return replace(spec, shape=large, stride=row_major(large), offset=0, base=0, seed=0)
