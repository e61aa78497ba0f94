"""The same call again, under other conditions that a card leaves open: what depends on them was right by luck.

- Programs run in reverse and in another order, where what an atomic does may depend on it. Other results must be right
  as well: they are variants.
- Lanes that the mask of a load leaves undefined get another value, where they may reach something. A result that
  changes is a finding. Programs that wait for each other run one at a time, so costly runs of theirs have fewer turns.
- A call that uses memory of earlier calls is made after one of other values, in reverse order where programs order
  themselves: a flag that is still set orders nothing. Its results are a variant.
- What a kernel promises to be contiguous is read as promised. A result that changes is a finding.
- An autotuned launch that loads from what it stores to, or is given memory that was filled before, is made as in the
  autotuner's first call: another configuration may leave values that this one does not store to. The results are a
  variant.

All of it is for runs without findings: the others have their reason already.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from gradekit.engine.budget import Limit, OverBudget
from gradekit.engine.conditions import FILLINGS, Conditions, Earlier, Order
from gradekit.engine.executor import RunResult, Variant
from gradekit.engine.kernel_facts import every_operation, facts, leaves_lanes_undefined, parsed, promises_contiguity
from gradekit.engine.ttir_locations import line_of
from gradekit.findings import Cause, Finding
from gradekit.observations import SHOWN
from gradekit.program import Choice, Fill, Launch, Program, every_step, views_in

FIRST_CALL = "In the first call, in which the autotuner runs every configuration before the last"
SECOND_CALL = "In a second call, with what a first call with other values has left in kept memory"
ORDERS = (Order.REVERSED, Order.SHUFFLED)


def run_with_trials(
    program: Program, run: Callable[[Conditions], RunResult], number: int = 0, earlier: Earlier | None = None
) -> RunResult:
    """What `run` gives of `program` under the usual conditions; with what it gives under others that matter for it, if
    the `number` of the call says that it is its turn. `earlier` makes the inputs of a call that may come before."""
    usual = run(Conditions())
    if usual.findings:
        return usual
    cost = usual.counters.work
    for conditions, circumstance in _other_conditions(program, usual, number, earlier):
        other = run(conditions)
        usual.counters.work += other.counters.work
        usual.findings += [replace(found, message=f"{circumstance}: {found.message}") for found in other.findings]
        if not _same(usual.results, other.results):
            usual.variants.append(Variant(circumstance, other.results))
    leaves_lanes = any(facts(kernel.unaligned).undefined_loads for kernel in program.kernels.values())
    waits = any(facts(kernel.unaligned).waits for kernel in program.kernels.values())
    if (
        leaves_lanes
        and not usual.findings
        and _has_its_turn(cost, number, seldom=Limit.SELDOM if waits else Limit.OFTEN)
    ):
        usual.findings += _undefined_lanes(program, usual, run)
    if usual.begins_anew and not usual.findings and _has_its_turn(cost, number, seldom=Limit.OFTEN):
        usual.findings += _read_as_promised(program, usual, run)
    return usual


def _has_its_turn(cost: int, number: int, seldom: int = Limit.SELDOM) -> bool:
    """Whether a run of so much work is made under other conditions too: by that alone, so the same for each grader."""
    return cost <= Limit.CHEAP or number % (seldom if cost > Limit.COSTLY else Limit.OFTEN) == 0


def _other_conditions(
    program: Program, usual: RunResult, number: int, earlier: Earlier | None
) -> Iterator[tuple[Conditions, str]]:
    cost = usual.counters.work
    for order in _orders(program, cost, number):
        yield Conditions(order), f"With the programs {order.value}"
    if not _has_its_turn(cost, number, seldom=Limit.OFTEN):
        return
    choices = [choice for choice in program.choices() if len(choice.options) > 1 and choice.tuning is None]
    if choices and (usual.in_place or _is_filled(program, choices)):
        yield Conditions(tuning=True), FIRST_CALL
    if earlier is not None and kept_memory(program):
        ordered = any(facts(kernel.unaligned).ordered for kernel in program.kernels.values())
        yield Conditions(Order.REVERSED if ordered else Order.ASCENDING, earlier=earlier), SECOND_CALL


def _is_filled(program: Program, choices: Sequence[Choice]) -> bool:
    """Whether a launch that is chosen from others is given memory that was filled."""
    filled = {step.target.storage for step in every_step(program.steps) if isinstance(step, Fill)}
    launches = [step for step in every_step(choices) if isinstance(step, Launch)]
    return any(view.storage in filled for launch in launches for view in views_in(launch.args))


def _orders(program: Program, cost: int, number: int) -> Sequence[Order]:
    """The orders of a run: for a few runs where they change roundings alone, one of them where it costs much."""
    known = [facts(kernel.unaligned) for kernel in program.kernels.values()]
    one = (ORDERS[number // Limit.SELDOM % 2],)
    if any(fact.ordered for fact in known):
        return () if not _has_its_turn(cost, number) else ORDERS if cost <= Limit.CHEAP else one
    return one if number % Limit.OFTEN == 0 and any(fact.rounded for fact in known) else ()


def kept_memory(program: Program) -> frozenset[int]:
    """The sizes in bytes of the storages that were allocated before the call and that its kernels use."""
    made = program.kept_allocations
    launches = [step for step in every_step(program.steps[program.kept :]) if isinstance(step, Launch)] if made else ()
    used = [{view.storage for view in views_in(launch.args)} | program.addresses.keys() for launch in launches]
    return frozenset(step.nbytes for step in made if any(step.storage in storages for storages in used))


def _read_as_promised(program: Program, usual: RunResult, run: Callable[[Conditions], RunResult]) -> list[Finding]:
    """The finding where it matters that lanes promised to go on begin anew: most do past the end, and are dropped."""
    promising = next(kernel for kernel in program.kernels.values() if facts(kernel.unaligned).contiguous)
    try:
        other = run(Conditions(promised=True))
    except OverBudget:
        return []
    usual.counters.work += other.counters.work
    if _same(usual.results, other.results):
        return []
    ops = every_operation(parsed(promising.unaligned))
    location = next(op.location for op in ops if promises_contiguity(op))
    message = (
        "promises to the compiler by tl.max_contiguous that elements follow one another, but some do not; read "
        "as promised, they give another result"
    )
    return [Finding(Cause.BROKEN_PROMISE, message, line_of(location, program.path), promising.name)]


# --- lanes that a mask leaves undefined -------------------------------------------------------------------------------


def _undefined_lanes(program: Program, usual: RunResult, run: Callable[[Conditions], RunResult]) -> list[Finding]:
    for filling in FILLINGS:
        changed = _changed(usual, run, Conditions(filled=filling))
        if changed is None:
            continue
        loads = list(_lines(program))
        for kernel, line in loads:
            alone = _changed(usual, run, Conditions(filled=filling, line=line))
            if alone is not None:
                return [_finding(alone, line, kernel)]
        return [_of_all(changed, loads)]
    return []


def _of_all(elements: tuple[tuple[int, ...], ...], loads: Sequence[tuple[str, int]]) -> Finding:
    """The finding where no load alone matters: at the first of those that do together."""
    if not loads:
        return _finding(elements, None, "")
    lines = sorted({line for _, line in loads})
    if len(lines) == 1:
        return _finding(elements, lines[0], loads[0][0])
    which = f"the masks of lines {', '.join(map(str, lines[:-1]))} and {lines[-1]}"
    return _finding(elements, loads[0][1], loads[0][0], which)


def _changed(
    usual: RunResult, run: Callable[[Conditions], RunResult], conditions: Conditions
) -> tuple[tuple[int, ...], ...] | None:
    """The first elements of a result that are others under these conditions; None where none are."""
    try:
        other = run(conditions)
    except OverBudget:
        return ()
    usual.counters.work += other.counters.work
    if other.findings:
        return ()
    for before, after in zip(usual.results, other.results, strict=True):
        if isinstance(before, Tensor) and isinstance(after, Tensor) and not bool(agree(before, after).all()):
            return tuple(map(tuple, (~agree(before, after)).nonzero()[:SHOWN].tolist()))
    return None


def _lines(program: Program) -> Iterator[tuple[str, int]]:
    """The lines of loads that leave lanes undefined, each with its kernel."""
    for kernel in program.kernels.values():
        loads = filter(leaves_lanes_undefined, every_operation(parsed(kernel.unaligned)))
        lines = (line_of(op.location, program.path) for op in loads)
        yield from dict.fromkeys((kernel.name, line) for line in lines if line is not None)


def _finding(elements: tuple[tuple[int, ...], ...], line: int | None, kernel: str, which: str = "the mask") -> Finding:
    message = f"uses lanes that {which} left out; Triton leaves their value undefined, and the result depends on it"
    return Finding(Cause.UNDEFINED_LANES, message, line, kernel, elements=elements, count=max(len(elements), 1))


def _same(before: Sequence[Any], after: Sequence[Any]) -> bool:
    return all(agree(a, b).all() if isinstance(a, Tensor) else a == b for a, b in zip(before, after, strict=True))


def agree(a: Tensor, b: Tensor) -> Tensor:
    """Where two tensors of one shape and dtype agree; NaN agrees with NaN."""
    if a.dtype.is_floating_point and a.itemsize > 1:
        return (a == b) | (a.isnan() & b.isnan())
    return a.view(torch.uint8) == b.view(torch.uint8) if a.dtype.is_floating_point else a == b
