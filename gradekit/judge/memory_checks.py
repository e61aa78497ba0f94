"""Claims about memory: what a run touched, launched, allocated and moved."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from gradekit.causes import IN_MEMORY, Cause
from gradekit.findings import Finding
from gradekit.judge.contents import nbytes
from gradekit.judge.failure import Failure, sentence
from gradekit.judge.observation import Observed
from gradekit.program import Allocate, Launch, Program, View, run_steps

_RANK = {cause: rank for rank, cause in enumerate(Cause) if cause.traits & IN_MEMORY}
"""The findings that fail a memory check, with the order in which they are shown."""


def assert_memory_clean(observation: Observed) -> None:
    """Raise if the run touched memory that it must not, left results unwritten or let programs interfere.

    Raises:
        Failure: the gravest finding; the facts have all of them.
    """
    _assert_watched(observation)
    found = sorted((f for f in observation.findings if f.cause in _RANK), key=lambda f: _RANK[f.cause])
    if found:
        worst = found[0]
        raise Failure(worst.cause, sentence(worst), line=worst.line, facts={"findings": [_facts(f) for f in found]})


def gravest(causes: Iterable[Cause]) -> Cause | None:
    """The one among `causes` that a memory check shows first; None where none of them fails it."""
    return min((cause for cause in causes if cause in _RANK), key=lambda cause: _RANK[cause], default=None)


def assert_inputs_unmodified(observation: Observed) -> None:
    """Raise if a kernel or the host wrote to an input, or if a result lies in memory that the call did not allocate.

    Raises:
        Failure: input-modified for a write, unchanged-input where an input was handed back, kept-result where the
            result lies in memory of an earlier call.
    """
    _assert_watched(observation)
    for finding in observation.findings:
        if finding.cause is Cause.INPUT_MODIFIED:
            raise Failure(finding.cause, sentence(finding), line=finding.line, facts={"findings": [_facts(finding)]})
    program = observation.program
    inputs = {view.storage for view in program.inputs} if program else set()
    if program and any(isinstance(r, View) and r.storage in inputs for r in program.results):
        raise Failure(Cause.UNCHANGED_INPUT, "The result lies in the memory of an input; it must be a new tensor.")
    if program:
        assert_result_is_new(program)


def assert_result_is_new(program: Program) -> None:
    """Raise if a result of the call that became `program` lies in memory that was there before.

    Raises:
        Failure: kept-result.
    """
    if program.results_kept:
        message = (
            "The result lies in memory that was allocated before the call and kept: the next call overwrites a "
            "result that "
            "the caller still has. It must be a new tensor."
        )
        raise Failure(Cause.KEPT_RESULT, message)


def _assert_watched(observation: Observed) -> None:
    """Raise where nobody watched the memory, because a card alone could run it: then
    only what it did wrong is known."""
    unknown = getattr(observation, "unknown", None)
    if unknown is not None and not observation.findings:
        raise unknown.with_traceback(None)


def _facts(finding: Finding) -> dict[str, Any]:
    return {
        "cause": str(finding.cause),
        "line": finding.line,
        "kernel": finding.kernel,
        "launch": finding.launch,
        "tensor": finding.tensor,
        "elements": [list(e) for e in finding.elements],
        "programs": [list(p) for p in finding.programs],
        "count": finding.count,
        "size": finding.facts.get("elements_in_storage"),
    }


def assert_launches(observation: Observed, at_most: int = 1) -> None:
    """Raise if the call launched more than `at_most` kernels.

    Raises:
        Failure: too-many-launches, with the line of the first launch too many.
    """
    launches = observation.counters.launches
    if launches <= at_most:
        return
    kernels = "kernel" if at_most == 1 else "kernels"
    raise Failure(
        Cause.TOO_MANY_LAUNCHES,
        f"The call launches {launches} kernels, and may launch {at_most} {kernels} at most.",
        line=line_of(_nth_launch(observation.program, at_most)),
        facts={"launches": launches, "at_most": at_most},
    )


def assert_allocates(observation: Observed, *, only_the_result: bool = True, at_most_bytes: int | None = None) -> None:
    """Raise if the host allocated more than its results take, or where given than `at_most_bytes`, results included.

    Results may always be allocated: inputs that are made for a submission lie beyond the sizes that a test's author
    had in mind, and there a bound in bytes may be less than the results alone.

    Raises:
        Failure: too-much-memory, with the line of the largest allocation that is no result.
    """
    if at_most_bytes is None and not only_the_result:
        raise ValueError("say at_most_bytes where more than the result may be allocated")
    allowed = max(nbytes(observation.results), at_most_bytes or 0)
    used = observation.counters.bytes_allocated
    if used <= allowed:
        return
    raise Failure(
        Cause.TOO_MUCH_MEMORY,
        f"The call allocates {_bytes(used)}, and may allocate {_bytes(allowed)}"
        + (" at most." if at_most_bytes is not None else ": the result and nothing else."),
        line=line_of(extra_allocation(observation.program)),
        facts={"bytes_allocated": used, "at_most": allowed},
    )


def assert_bytes_moved(observation: Observed, *, at_most: float | None = None, times_least: float = 1.0) -> None:
    """Raise if the kernels loaded and stored more than `at_most` bytes, or than `times_least` x `least_bytes`.

    Raises:
        Failure: too-many-bytes.
    """
    _assert_watched(observation)
    allowed = times_least * least_bytes(observation) if at_most is None else at_most
    counters = observation.counters
    moved = counters.bytes_loaded + counters.bytes_stored
    if moved > allowed:
        raise Failure(
            Cause.TOO_MANY_BYTES,
            f"The kernels load {_bytes(counters.bytes_loaded)} and store {_bytes(counters.bytes_stored)}; together "
            f"they may move {_bytes(allowed)}. Is a value read or written more than once that could stay on the chip?",
            facts={"bytes_loaded": counters.bytes_loaded, "bytes_stored": counters.bytes_stored, "at_most": allowed},
        )


def least_bytes(observation: Observed) -> int:
    """The traffic of reading every element of every input once and writing every element of every result once."""
    return sum(_nbytes(i) for i in observation.inputs) + nbytes(observation.results)


def _nbytes(value: Any) -> int:
    if isinstance(value, torch.Tensor):
        return value.numel() * value.element_size()
    return int(getattr(value, "nbytes", 0))


def _bytes(count: float) -> str:
    for unit, size in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= 10 * size:
            return f"{count / size:.1f} {unit}"
    return f"{count:.0f} bytes"


def _nth_launch(program: Program | None, number: int) -> Launch | None:
    launches = list(program.launches()) if program else []
    return launches[number] if number < len(launches) else None


def extra_allocation(program: Program | None) -> Allocate | None:
    """The largest allocation that is no result."""
    if program is None:
        return None
    results = {r.storage for r in program.results if isinstance(r, View)}
    extra = [a for a in run_steps(program.steps) if isinstance(a, Allocate) and a.storage not in results]
    return max(extra, key=lambda allocation: allocation.nbytes, default=None)


def line_of(step: Allocate | Launch | None) -> int | None:
    """The submission's line of a step."""
    return step.source.line if step and step.source else None
