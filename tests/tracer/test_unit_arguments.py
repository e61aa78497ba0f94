"""A kernel is lowered once for launches that differ in which integers are 1, unless the kernel can tell that they are."""

import os

import pytest

from gradekit.program import Program, Scalar
from gradekit.sandbox import TraceError, Tracer
from gradekit.sandbox.tracer import Form
from gradekit.wire import ForkedCache

from .helpers import submission, tensor

SCALED = """
@triton.jit
def scaled_kernel(x_ptr, out_ptr, rows, columns, stride, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    BODY

def entry(x, stride, block=32):
    out = torch.empty_like(x)
    grid = lambda meta: (triton.cdiv(x.numel(), block),)
    scaled_kernel[grid](x, out, x.shape[0], x.shape[1], stride, BLOCK=block)
    return out
"""

INDEXES = """
    blocks = tl.cdiv(rows * columns, BLOCK)
    mask = (offsets < rows * columns) & (blocks > 0)
    x = tl.load(x_ptr + offsets * stride, mask=mask)
    tl.store(out_ptr + offsets, x, mask=mask)
"""

STORES = "tl.store(out_ptr + offsets, {}, mask=offsets < rows * columns)"

TELLS = {
    "a branch": "if columns == 1:\n        k = 2\n    else:\n        k = 3\n    " + STORES.format("offsets * k"),
    "a narrow integer": STORES.format("offsets.to(tl.int8) * stride"),
    "a quotient with a fraction": STORES.format("offsets * (3 / columns)"),
    "a negative quotient": STORES.format("offsets + (columns - 4) // 2"),
    "a question for the type": STORES.format("offsets * isinstance(columns, int)"),
    "a number of lanes": STORES.format("offsets + tl.max(tl.arange(0, columns), 0)"),
    "a choice by value": STORES.format("offsets + (columns and 5)"),
}


def body(kernel: str) -> str:
    """A submission with `kernel` for the kernel's body."""
    return SCALED.replace("BODY", kernel.strip("\n").removeprefix("    "))


def programs(kernel: str, *calls: tuple[tuple[int, int], int], exact: bool = False, block: int = 32) -> list[Program]:
    """The programs of calls with such a kernel, each with the shape of its tensor and a stride."""
    with Tracer(submission(body(kernel))) as tracer:
        return [
            tracer.trace_form(Form("entry", (tensor(0, *shape), Scalar(n), Scalar(block)), is_exact=exact))
            for shape, n in calls
        ]


def texts(found: list[Program]) -> list[str]:
    """The texts of their kernels, alignment aside."""
    return [kernel.unaligned for program in found for kernel in program.kernels.values()]


CALLS = (((1, 1), 1), ((7, 1), 1), ((1, 7), 1), ((7, 3), 1), ((5, 3), 3))


def test_one_text_serves_whichever_integers_are_one() -> None:
    """Sizes and strides of 1 are arguments there, as other numbers are"""
    found = programs(INDEXES, *CALLS)
    assert len(set(texts(found))) == 1
    assert [launch.args[2:] for launch in found[0].launches()] == [(Scalar(1, "i32"),) * 3]


def test_an_exact_program_is_specialized_as_triton_does() -> None:
    """The same calls have a text for each set of integers that are 1"""
    assert len(set(texts(programs(INDEXES, *CALLS, exact=True)))) == 5


def test_one_process_gives_both() -> None:
    """What was asked for first does not decide what the next program holds"""
    call = ("entry", (tensor(0, 7, 1), Scalar(1), Scalar(32)))
    with Tracer(submission(body(INDEXES))) as tracer:
        first, exact, again = (tracer.trace_form(Form(*call, is_exact=which)) for which in (False, True, False))
    assert texts([first]) == texts([again]) != texts([exact])
    assert texts([exact]) == texts(programs(INDEXES, ((7, 1), 1), exact=True))


@pytest.mark.parametrize("how", TELLS)
def test_a_kernel_that_can_tell_is_lowered_for_each(how: str) -> None:
    """A branch, a type, or arithmetic that constants and arguments do differently"""
    calls = [((7, 1), 1), ((7, 2), 2)]
    if how == "a number of lanes":
        calls.pop()
    assert texts(programs(TELLS[how], *calls)) == texts(programs(TELLS[how], *calls, exact=True))


def test_a_kernel_that_fails_for_a_one_fails() -> None:
    """`columns.to(...)` is refused where columns is 1, as by Triton, and nowhere else"""
    kernel = STORES.format("offsets + columns.to(tl.int64)")
    assert programs(kernel, ((7, 2), 2))
    with pytest.raises(TraceError, match="to"):
        programs(kernel, ((7, 1), 2))


def test_a_branch_of_other_constants_is_looked_at_by_itself() -> None:
    """What was seen for one block size says nothing of a statement that another reaches"""
    kernel = f"if BLOCK == 64:\n        offsets += (columns - 4) // 2\n    {STORES.format('offsets * stride')}"
    with Tracer(submission(body(kernel))) as tracer:
        found = [
            tracer.trace_form(Form("entry", (tensor(0, 7, columns), Scalar(2), Scalar(block)), is_exact=False))
            for block in (32, 64)
            for columns in (1, 2)
        ]
    small, same, large, other = texts(found)
    assert small == same and large != other


# --- What one process of a submission has lowered, the others need not lower again; no more passes between ------------


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


def told_in(cache: ForkedCache) -> bytes:
    """All that the processes have told each other."""
    return os.pread(cache._file, 1 << 24, 0)


def steps_by(text: str, cache: ForkedCache | None) -> object:
    """What a process of the submission makes of the call."""
    with Tracer(submission(text), lowered=cache) as tracer:
        return tracer.trace_form(CALL)


def test_another_process_gives_the_same_and_has_nothing_new_to_tell() -> None:
    """The second finds the kernel, and whether it serves for a 1, and both are as in a process by itself"""
    cache = ForkedCache(1 << 20)
    first, told = steps_by(body(INDEXES), cache), told_in(cache)
    assert told.count(b"tt.func") == 1
    assert steps_by(body(INDEXES), cache) == first == steps_by(body(INDEXES), None)
    assert told_in(cache).count(b"tt.func") == 1


def test_other_constants_or_other_text_are_lowered_anew() -> None:
    """A kernel whose body differs is none that is known"""
    cache = ForkedCache(1 << 20)
    steps_by(body(INDEXES), cache)
    other = body(INDEXES.replace("* stride", "+ stride"))
    assert steps_by(other, cache) == steps_by(other, None)


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
    steps_by(body(INDEXES), cache)
    before = told_in(cache)
    steps_by(text + body(INDEXES), cache)
    assert told_in(cache)[: len(before)] == before
