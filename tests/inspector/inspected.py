"""Kernels that show each thing the inspector says, and how to ask it about them."""

import functools
from typing import Any

from gradekit.inputs.layouts import row_major
from gradekit.inputs.spec import Input
from gradekit.inspector.inspect import Inspected, inspect
from gradekit.inspector.targets import target
from gradekit.program import Program
from gradekit.sandbox import Tracer
from gradekit.subject.call_spec import to_arguments
from gradekit.submission import Submission
from tests.beside import beside

SOURCE = beside(__file__)["source"]

LINES = SOURCE.split("\n")


def line(comment: str) -> int:
    """The line of SOURCE that ends with `# comment`."""
    (found,) = [number for number, text in enumerate(LINES, start=1) if text.endswith(f"# {comment}")]
    return found


def float32(*shape: int, dtype: str = "float32", **changes: Any) -> Input:
    """A float32 input, contiguous unless said otherwise."""
    return Input(dtype, shape, changes.get("stride", row_major(shape)), changes.get("offset", 0))


float16 = functools.partial(float32, dtype="float16")


@functools.cache
def program(entry: str, *inputs: Input) -> Program:
    """The program of a call of SOURCE."""
    with Tracer(Submission("submission.py", SOURCE, "")) as tracer:
        return tracer.trace(entry, to_arguments(inputs))


@functools.cache
def inspected(entry: str, *inputs: Input, on: str = "sm_80") -> Inspected:
    """The one kernel that `entry(*inputs)` launches, on a target."""
    (found,) = inspect(program(entry, *inputs), target(on))
    return found


def said(entry: str, *inputs: Input, on: str = "sm_80") -> dict[str, list[str]]:
    """The sentences on that kernel, by their kind."""
    kinds: dict[str, list[str]] = {}
    for sentence in inspected(entry, *inputs, on=on).sentences:
        kinds.setdefault(sentence.kind, []).append(sentence.text)
    return kinds
