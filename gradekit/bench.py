"""`gradekit bench`: a submission timed over a range of sizes, beside torch run eagerly, torch.compile and the roofline.

Runs in the grader's process, on a machine with a card. What is timed is the call that the assignment's tests time, with
one of its sizes varied; a figure here is the figure of a check.

assignment.toml may say, in a table [bench]:

    vary = 4096                the size that varies, wherever it stands in the inputs' shapes; by default the largest
    sizes = [512, 1024, 2048]  what it becomes; by default powers of two up to it
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gradekit.assignment import Assignment, UsageError, of_path
from gradekit.inputs.layouts import row_major
from gradekit.inputs.spec import Input
from gradekit.judge.failure import Failure
from gradekit.plugin.timed import timed_calls
from gradekit.report.speed_sentences import ceiling
from gradekit.sandbox import TraceError, Tracer
from gradekit.subject.device import Device, NeedsCard
from gradekit.subject.subject import Subject
from gradekit.subject.timed_call import Impossible, Timed, TimedCall, facts
from gradekit.submission import read
from gradekit.versions import environment

SCHEMA = "gradekit/bench/1"

DEFAULT_SIZES = 7  # so many powers of two, where nothing else is said


@dataclass(frozen=True)
class Sweep:
    """The calls to time: `call` with `vary` in its inputs' shapes replaced by each of `sizes`."""

    call: TimedCall
    vary: int
    sizes: tuple[int, ...]

    def inputs(self, size: int) -> tuple[Any, ...]:
        """The arguments at one size; arguments that were one object stay one."""
        made: dict[int, Any] = {}
        return tuple(made.setdefault(id(arg), _resized(arg, self.vary, size)) for arg in self.call.args)


def sweep(assignment: Assignment, sizes: Sequence[int] = ()) -> Sweep:
    """The sweep of an assignment: of these sizes, else as its assignment.toml says, else powers of two. Raises
    UsageError where the tests time no call, or no input has the size that is to vary."""
    calls = timed_calls(assignment)
    if not calls:
        raise UsageError(f"the tests of {assignment.id} time no call, so there is nothing to sweep")
    said = assignment.bench
    found = _varying(calls, said.get("vary"))
    chosen = said.get("vary") or max(_sizes(found))
    return Sweep(found, chosen, tuple(sizes) or tuple(said.get("sizes", ())) or _powers(chosen))


def _varying(calls: Sequence[TimedCall], vary: int | None) -> TimedCall:
    fitting = [call for call in calls if _sizes(call) and vary in (None, *_sizes(call))]
    if not fitting:
        known = sorted({size for call in calls for size in _sizes(call)})
        raise UsageError(f"no input that is timed has the size {vary}; there are {', '.join(map(str, known))}")
    return fitting[0]


def _sizes(call: TimedCall) -> list[int]:
    return [size for arg in call.args if isinstance(arg, Input) for size in arg.shape]


def _powers(largest: int) -> tuple[int, ...]:
    top = largest.bit_length() - 1
    return tuple(1 << n for n in range(max(top - DEFAULT_SIZES + 1, 0), top + 1))


def _resized(arg: Any, vary: int, size: int) -> Any:
    if not isinstance(arg, Input):
        return arg
    shape = tuple(size if n == vary else n for n in arg.shape)
    return replace(arg, shape=shape, stride=row_major(shape)) if shape != arg.shape else arg


# --- measuring --------------------------------------------------------------------------------------------------------


def bench(
    path: Path, given_id: str | None = None, *, sizes: Sequence[int] = (), device: str = "auto",
    on_row: Callable[[dict[str, Any]], None] = lambda row: None,
) -> dict[str, Any]:  # fmt: skip
    """The record of a sweep, with every sample; `on_row` sees each row when it is there. Raises NeedsCard where this
    machine has no card, or none may be used, UsageError as `sweep` does, AssignmentError and SubmissionError."""
    submission, assignment = read(path), of_path(path, given_id)
    plan, card = sweep(assignment, sizes), Device(device, fresh=True)
    card.need()
    subject = Subject(submission, assignment, lambda: Tracer(submission, calling=assignment.calling), device=card)
    rows = []
    with contextlib.closing(card), contextlib.closing(subject):
        for row in _rows(subject, plan):
            on_row(row)
            rows.append(row)
    return {
        "schema": SCHEMA, "assignment": assignment.id, "submission": submission.facts(), "entry": plan.call.entry,
        "vary": plan.vary, "rows": rows, "environment": environment() | card.names,
    }  # fmt: skip


def _rows(subject: Subject, plan: Sweep) -> Iterator[dict[str, Any]]:
    for size in plan.sizes:
        inputs = plan.inputs(size)
        given = [arg.to_json() if isinstance(arg, Input) else arg for arg in inputs]
        yield _row(subject, plan.call, inputs) | {"size": size, "inputs": given}


def _row(subject: Subject, call: TimedCall, inputs: Sequence[Any]) -> dict[str, Any]:
    """One size's figures; or why there are none, which stops no other size."""
    try:
        return row_of(subject.time(call.entry, inputs, call.against, call.expected))
    except (Failure, TraceError) as error:
        return {"error": str(error.message)}
    except (NeedsCard, Impossible) as error:
        return {"error": str(error)}


def row_of(timed: Timed) -> dict[str, Any]:
    """What a row says of a call that was timed: its facts as in a report, the roofline in microseconds, and samples."""
    said = facts(timed)
    return {
        "error": "", **said, "roofline_microseconds": ceiling(said["roofline"]),
        "samples": [{side: list(seconds) for side, seconds in r.seconds.items()} for r in timed.rounds],
        "throttled": [list(r.throttled) for r in timed.rounds],
    }  # fmt: skip
