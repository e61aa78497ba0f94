"""Short ways to say what is traced."""

from collections.abc import Sequence
from textwrap import dedent
from typing import Any

import pytest

from gradekit.program import Argument, Program, Scalar, Step, View
from gradekit.sandbox import TraceError, Tracer

from .styles import Text

HEAD = """\
import torch
import triton
import triton.language as tl

@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)

"""
"""What most samples begin with; their own first line is line 10."""


def submission(body: str) -> Text:
    """HEAD and `body`."""
    return Text(HEAD + dedent(body).strip("\n") + "\n")


def tensor(storage: int, *shape: int, dtype: str = "float32", offset: int = 0) -> View:
    """A contiguous tensor."""
    stride = [1]
    for size in reversed(shape[1:]):
        stride.insert(0, stride[0] * size)
    return View(storage, dtype, shape, tuple(stride[: len(shape)]), offset)


def traced(body: str, *args: Argument, entry: str = "entry") -> Program:
    """The program of one call of a submission that is HEAD and `body`."""
    with Tracer(submission(body)) as tracer:
        return tracer.trace(entry, args)


def refused(body: str, *args: Argument, entry: str = "entry") -> TraceError:
    """Why that call is not traced."""
    with Tracer(submission(body)) as tracer, pytest.raises(TraceError) as caught:
        tracer.trace(entry, args)
    return caught.value


def kinds(steps: Sequence[Step]) -> list[str]:
    """The names of the steps."""
    return [type(step).__name__ for step in steps]


def only(steps: Sequence[Step], kind: type) -> Any:
    """The one step of that kind."""
    (found,) = (step for step in steps if isinstance(step, kind))
    return found


X = tensor(0, 100)
SCALAR = Scalar(2.5)
