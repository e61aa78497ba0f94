"""What one process of a submission has lowered, the others need not lower again; no more than that passes between."""

import os

import pytest

from gradekit.sandbox import Tracer
from gradekit.sandbox.tracer import Form
from gradekit.wire import ForkedCache

from .helpers import submission, tensor
from .test_unit_arguments import INDEXES, Scalar, body

CALL = Form("entry", (tensor(0, 7, 1), Scalar(1), Scalar(32)), is_exact=False)

REWRITES = """
import os
try:
    os.fchmod(4, 0o600)
    with open(os.open("/proc/self/fd/4", os.O_RDWR), "r+b") as file:
        file.write(b"x" * 100)
except OSError:
    pass
try:
    os.write(4, b"x" * 100)
except OSError:
    pass
"""


def kept(cache: ForkedCache) -> bytes:
    """All that the processes have told each other."""
    return os.pread(cache._file, 1 << 24, 0)


def kernels(text: str, cache: ForkedCache | None) -> object:
    """What a process of the submission makes of the call."""
    with Tracer(submission(text), lowered=cache) as tracer:
        return tracer.trace_form(CALL)


def test_another_process_gives_the_same_and_has_nothing_new_to_tell() -> None:
    """The second finds the kernel, and whether it serves for a 1, and both are as in a process by itself"""
    cache = ForkedCache(1 << 20)
    first, told = kernels(body(INDEXES), cache), kept(cache)
    assert told.count(b"tt.func") == 1
    assert kernels(body(INDEXES), cache) == first == kernels(body(INDEXES), None)
    assert kept(cache).count(b"tt.func") == 1


def test_other_constants_or_other_text_are_lowered_anew() -> None:
    """A kernel whose body differs is none that is known"""
    cache = ForkedCache(1 << 20)
    kernels(body(INDEXES), cache)
    other = body(INDEXES.replace("* stride", "+ stride"))
    assert kernels(other, cache) == kernels(other, None)


def test_what_prints_while_it_is_compiled_prints_in_each() -> None:
    """Output does not depend on who was first"""
    cache, text = ForkedCache(1 << 20), body('tl.static_print("here")\n' + INDEXES)
    for _ in range(2):
        with Tracer(submission(text), lowered=cache) as tracer:
            tracer.trace_form(CALL)
            assert tracer.output.count("here") == 1


@pytest.mark.parametrize("text", [REWRITES])
def test_a_submission_cannot_write_what_others_read(text: str) -> None:
    """The table is open to read alone"""
    cache = ForkedCache(1 << 20)
    kernels(body(INDEXES), cache)
    before = kept(cache)
    kernels(text + body(INDEXES), cache)
    assert kept(cache)[: len(before)] == before
