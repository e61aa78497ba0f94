"""What the compiler makes of a program's kernels on a named card, without that card; `gradekit inspect` asks it of a
submission, traced on inputs worth looking at.

Runs in the grader's process; the submission runs in the tracer's, the compiler in its own.
"""

import dataclasses
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradekit.assignment import Assignment, UsageError, of_path
from gradekit.inputs.layouts import row_major
from gradekit.inputs.spec import Input
from gradekit.inspector.compile import CompileJob, compile_all
from gradekit.inspector.facts import Facts, Launched, facts
from gradekit.inspector.instructions import rows
from gradekit.inspector.narrow_access import explained
from gradekit.inspector.sentences import Sentence, sentences
from gradekit.inspector.targets import Target
from gradekit.program import ITEMSIZE, Choice, Launch, Program, Step
from gradekit.sandbox import Tracer
from gradekit.subject.call_spec import to_arguments
from gradekit.subject.timed_call import TimedCall
from gradekit.submission import Submission, read
from gradekit.versions import environment

SCHEMA = "gradekit/inspection/1"

Timed = Callable[[Assignment], Sequence[TimedCall]]
"""Gives the calls that an assignment's tests time."""


@dataclass(frozen=True)
class Inspected:
    """One kernel in one configuration: its facts, what there is to say of it, and the text of every stage."""

    facts: Facts
    sentences: tuple[Sentence, ...]
    stages: dict[str, str]


def inspect(program: Program, where: Target) -> list[Inspected]:
    """Every kernel that `program` launches in each configuration, in order."""
    launched = _launched(program)
    compiled = compile_all([CompileJob(item.kernel, where.arch, where.last) for item in launched])
    pairs = zip(launched, compiled, strict=True)
    known = [(explained(item, facts(item, result, where)), result.stages) for item, result in pairs]
    return [Inspected(one, tuple(sentences(one)), stages) for one, stages in known]


def _launched(program: Program) -> list[Launched]:
    found: dict[str, Launched] = {}
    for label, launch in _launches(program.steps, ""):
        if launch.kernel in program.kernels:
            found.setdefault(launch.kernel, Launched(program.kernels[launch.kernel], launch, label, program.path))
    return list(found.values())


def _launches(steps: Sequence[Step], label: str) -> Iterator[tuple[str, Launch]]:
    for step in steps:
        if isinstance(step, Launch):
            yield label, step
        elif isinstance(step, Choice):
            for name, option in zip(step.labels, step.options, strict=False):
                yield from _launches(option, name)


# --- a submission -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class InspectionResult:
    """The kernels, with the call that they come from."""

    submission: Submission
    entry: str
    inputs: tuple[Any, ...]
    target: Target
    program: Program
    kernels: list[Inspected]

    def record(self) -> dict[str, Any]:
        """As data that `json.dumps` accepts."""
        return {
            "schema": SCHEMA, "submission": self.submission.facts(), "entry": self.entry,
            "inputs": [arg.to_json() if isinstance(arg, Input) else arg for arg in self.inputs],
            "target": self.target.name, "card": self.target.card, "unit": self.target.unit,
            "matrix_units": self.target.matrix_units,
            "kernels": [
                dataclasses.asdict(kernel.facts)
                | {"target": self.target.name, "sentences": list(map(dataclasses.asdict, kernel.sentences))}
                for kernel in self.kernels
            ],
            "lines": self._lines(), "environment": environment(),
        }  # fmt: skip

    def _lines(self) -> dict[str, str]:
        places = [use.dot.line for kernel in self.kernels for use in kernel.facts.dots]
        places += [use.access.line for kernel in self.kernels for use in kernel.facts.accesses]
        places += [said.line for kernel in self.kernels for said in kernel.sentences]
        return {
            str(found.line): found.text for n in sorted({n for n in places if n}) if (found := self.submission.line(n))
        }

    def stage(self, name: str) -> list[dict[str, Any]]:
        """The rows of the stage `name` of every kernel that reached it: [line or None, text]."""
        return [
            {
                "kernel": found.facts.kernel,
                "label": found.facts.label,
                "rows": [list(row) for row in rows(name, found.stages[name], self.program.path)],
            }
            for found in self.kernels
            if name in found.stages
        ]


def inspect_submission(
    path: Path, target: Target, *, assignment: str | None = None, entry: str | None = None,
    inputs: tuple[Any, ...] = (), timed: Timed,
) -> InspectionResult:  # fmt: skip
    """The kernels of the call `entry(*inputs)` on `target`. What is not given of the call is as the tests of the
    assignment have it, by the calls that are `timed`. Raises UsageError where no inputs are known, or no kernel is
    launched, and AssignmentError, SubmissionError, TraceError and Unavailable, as they say."""
    submission, calling = read(path), {}
    if not (entry and inputs):
        known = of_path(path, assignment)
        entry, inputs, calling = entry or known.entry, inputs or representative(known, timed), known.calling
    with Tracer(submission, calling=calling) as tracer:
        program = tracer.trace(entry, to_arguments(inputs))
    kernels = inspect(program, target)
    if not kernels:
        raise UsageError(f"{entry} launches no kernel")
    return InspectionResult(submission, entry, inputs, target, program, kernels)


def dumps(result: InspectionResult) -> str:
    """The record of an answer as JSON text, ending in a newline."""
    return json.dumps(result.record(), indent=2) + "\n"


def representative(assignment: Assignment, timed: Timed) -> tuple[Any, ...]:
    """The inputs of the first call that the assignment's tests time. Raises UsageError where they time none."""
    calls = [call for call in timed(assignment) if call.entry == assignment.entry]
    if not calls:
        raise UsageError(f"the tests of {assignment.id} time no call: say what to pass, such as -i 'float16 4096x4096'")
    return calls[0].args


_SPEC = re.compile(r"(\w+) *\[? *(\d+(?: *[x,] *\d+)*)? *,? *\]?( +transposed)?")


def parse_input(text: str) -> Any:
    """"float16 4096x4096", "float32 [8, 1000] transposed" or a number. Raises UsageError for anything else."""
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    found = _SPEC.fullmatch(text.strip())
    if found is None or found[1] not in ITEMSIZE:
        raise UsageError(f"{text!r} is no input: write a dtype and a shape, such as 'float16 4096x4096', or a number")
    shape = tuple(int(size) for size in re.findall(r"\d+", found[2] or ""))
    stride = row_major(shape)
    if found[3] and len(shape) > 1:
        *outer, inner, last = row_major((*shape[:-2], shape[-1], shape[-2]))
        stride = (*outer, last, inner)
    return Input(found[1], shape, stride)
