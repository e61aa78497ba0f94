"""What is known of a failure, for the choice of mends: what was seen, and where a wrong result comes from."""

from collections.abc import Collection, Mapping
from typing import Any

import torch

from gradekit.causes import IN_MEMORY, OUT_OF_BOUNDS, Cause
from gradekit.engine.kernel_facts import parsed
from gradekit.inputs.spec import Input
from gradekit.judge.evidence import errors_are_small, results_of
from gradekit.judge.failure import Failure
from gradekit.program import Copy, Launch, Program, View, needed_for, run_steps
from gradekit.repair.mend import Clues
from gradekit.source.draft import draft_of, leading_to, lines_of, making, stored_pointers
from gradekit.subject.subject import Call


def clues_of(error: Failure, call: Call, text: str) -> Clues:
    """The clues of an error in a call of a text."""
    has_no_result = error.cause in (Cause.COMPILATION_ERROR, Cause.BUDGET_EXCEEDED, Cause.EXCEPTION)
    observation = call.observation
    if observation is None or has_no_result:
        lines = making(text, error.line) if has_no_result and error.line is not None else frozenset[int]()
        return Clues(frozenset({error.cause}), (), lines=lines)
    small = error.comparison is not None and errors_are_small(error.comparison)
    strided = any(isinstance(arg, Input) and not arg.is_contiguous for arg in call.args)
    first, others = _kernels(error, observation, text)
    seen = {finding.cause for finding in observation.findings if finding.cause.traits & IN_MEMORY}
    causes = frozenset({error.cause, *seen})
    touched = any(cause.traits & IN_MEMORY for cause in causes)
    storages = _wrong_storages(error, observation)
    wrong = stored_through(observation.program, text, storages) if not touched else frozenset()
    astray = _astray(causes, observation.findings, {*first, *others}, text)
    return Clues(
        causes, first, others, small, strided, wrong, astray=astray, leading=_leading(astray, text),
        several=error.repeat is not None,
    )  # fmt: skip


def _astray(causes: frozenset[Cause], findings: Any, mine: set[str], text: str) -> frozenset[int]:
    """The lines of the accesses that go out of bounds; of all stores, where something is never written."""
    outside = {one.line for one in findings if one.cause in OUT_OF_BOUNDS and one.line is not None}
    draft = draft_of(text)
    if outside or draft is None:
        return frozenset(outside)
    inside = {access.line for kernel in draft.kernels for access in kernel.accesses}
    unread = {one.line for one in findings if one.cause is Cause.UNINITIALIZED_READ}
    if Cause.UNWRITTEN_OUTPUT not in causes and not (unread and not unread & inside):
        return frozenset()
    kernels = (kernel for kernel in draft.kernels if kernel.name in mine)
    return frozenset(access.line for kernel in kernels for access in kernel.accesses if not access.is_load)


def _leading(astray: frozenset[int], text: str) -> frozenset[int]:
    """The lines that decide where accesses out of bounds go."""
    draft = draft_of(text) if astray else None
    kernels = draft.kernels if draft is not None else []
    mine = [kernel for kernel in kernels if any(access.line in astray for access in kernel.accesses)]
    found = (one for kernel in mine for one in leading_to(kernel, astray))
    return frozenset(line for one in found for line in ([one.lineno] if hasattr(one, "body") else lines_of(one)))


def _kernels(error: Failure, observation: Any, text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The kernels of a call that write the wrong result, and those that write what these read."""
    program: Program = observation.program
    stored = stored_pointers(text)
    wrong = _wrong_storages(error, observation)
    steps, writers = list(run_steps(program.steps)), dict[str, bool]()
    named = [program.kernels[step.kernel].name if isinstance(step, Launch) else "" for step in steps]
    written = [
        {storage for storage, pointer in _pointers(program, step, stored).items() if pointer != ""}
        if isinstance(step, Launch) else set[int]() for step in steps
    ]  # fmt: skip
    for name, mine, is_needed in zip(named, written, needed_for(wrong, steps, written), strict=True):
        if name and is_needed:
            writers[name] = writers.get(name, False) or bool(mine & wrong)
    order = dict.fromkeys(program.kernels[launch.kernel].name for launch in program.launches())
    first = tuple(name for name in order if writers.get(name, False))
    others = tuple(name for name in order if not writers.get(name, True))
    return (first, others) if first or others else (tuple(order), ())


def stored_through(program: Program, text: str, storages: Collection[int]) -> frozenset[str]:
    """ "kernel.pointer" for each pointer that a call has stored to some storages through; nothing where that is not
    clear."""
    stored, found = stored_pointers(text), set[str]()
    for launch in program.launches():
        name, through = program.kernels[launch.kernel].name, _pointers(program, launch, stored)
        if None in through.values():
            return frozenset()
        found |= {f"{name}.{pointer}" for storage, pointer in through.items() if pointer and storage in storages}
    return frozenset(found)


def _pointers(program: Program, launch: Launch, stored: Mapping[str, Mapping[str, bool]]) -> dict[int, str | None]:
    """By the storages of a launch the pointer that it stores to each through; "" where it does not, and None where that
    is not clear: the kernel does not use the pointer itself, and what it calls may store to it."""
    kernel, launched = program.kernels[launch.kernel], {one.name for one in program.kernels.values()}
    known = stored.get(kernel.name)
    may_store = known is None or any(any(mine.values()) for name, mine in stored.items() if name not in launched)
    names = dict.fromkeys(name for name in parsed(kernel.ttir).entry.argument_names if "." not in name)
    found: dict[int, str | None] = {}
    for name, argument in zip(names, launch.args, strict=False):
        if isinstance(argument, View) and not found.get(argument.storage):
            is_stored = (known or {}).get(name, None if may_store else False)
            found[argument.storage] = None if is_stored is None else name if is_stored else ""
    return found


def _wrong_storages(error: Failure, observation: Any) -> set[int]:
    program: Program = observation.program
    given = results_of(observation) or [None] * len(program.results)
    views = [(r, v) for r, v in zip(program.results, given, strict=False) if isinstance(r, View)]
    wrong = error.comparison.actual if error.comparison is not None else None
    mine = [
        view for view, value in views
        if wrong is not None and value is not None
        and value.shape == wrong.shape and torch.equal(value.nan_to_num(), wrong.nan_to_num())
    ]  # fmt: skip
    return behind_copies(program, {view.storage for view in (mine or [view for view, _ in views])})


def behind_copies(program: Program, storages: Collection[int]) -> set[int]:
    """The storages, and those that they were copied from."""
    found = set(storages)
    for step in reversed(list(run_steps(program.steps))):
        if isinstance(step, Copy) and step.target.storage in found:
            found.add(step.origin.storage)
    return found
