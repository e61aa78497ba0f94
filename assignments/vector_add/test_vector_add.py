"""Checks of vector_add: add(x, y) for equal shapes of rank 1 to 3, in four dtypes, in any layout."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given

from gradekit import (
    assert_close,
    assert_inputs_unmodified,
    assert_memory_clean,
    assert_speed,
    at_least,
    calls,
    domain_of,
    normal,
    points,
    reference,
)

ADD = domain_of(__file__)["add"]
DTYPES = ADD.dtypes["T"]
PLAIN = ("contiguous",)
FLAT = {"ranks": [0], "at_most": 1 << 21}  # vectors, as long as they like
AROUND_BLOCKS = [1, 2, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025, 4095, 4096, 4097, 98_432, 100_003, 1 << 20]
TELLING = ("normal", "exponents", "zeros", "special")  # large integers are not exact in float32
ANY_VIEW = calls(ADD, sizes={"...": [1, 3, 32], "N": [1, 16, 37]}, values=["normal"], how={"aliases": ADD.aliases})


def expected(x, y):
    return reference(lambda x, y: x + y, x, y, steps="once")


@points(16, handout="It returns x + y")
@given(call=calls(ADD, dtypes=["float32"], sizes={"N": (1, 5000)}, values=["ones", "normal", "subnormal", "exponents"],
                  layouts=PLAIN, how=FLAT))  # fmt: skip
def test_contiguous_float32(submission, call):
    """Adds two contiguous float32 vectors"""
    assert_close(submission.add(*call), expected(*call))


@points(16, handout="the tail is never computed, and a short vector not at all")
@given(call=calls(ADD, dtypes=["float32"], sizes={"N": AROUND_BLOCKS}, layouts=PLAIN, values=["normal"], how=FLAT))
def test_boundary_sizes(submission, call):
    """Is right around the size of a block"""
    assert_close(submission.add(*call), expected(*call))


@points(12, handout="the same dtype: float32, float16, bfloat16 or int32")
@pytest.mark.parametrize("dtype", DTYPES)
@given(call=calls(ADD, dtypes=["float32"], sizes={"N": [1, 16, 37, 3000]}, layouts=PLAIN, values=TELLING, how=FLAT))
def test_every_dtype(submission, dtype, call):
    """Adds float32, float16, bfloat16 and int32, and keeps the dtype"""
    call = [replace(vector, dtype=dtype) for vector in call]
    assert_close(submission.add(*call), expected(*call))


@points(8, handout="rank 1, 2 or 3")
@given(
    call=calls(
        ADD, dtypes=["float32", "int32"], sizes={"...": (1, 40), "N": (1, 40)}, layouts=PLAIN, values=["normal"],
        how={"aliases": ADD.aliases},
    )
)  # fmt: skip
def test_ranks(submission, call):
    """Takes vectors, matrices and rank 3, and keeps the shape"""
    assert_close(submission.add(*call), expected(*call))


@points(12, handout="transposed, sliced, expanded, beginning anywhere in their memory")
@given(call=ANY_VIEW)
def test_any_stride_and_offset(submission, call):
    """Reads transposed, sliced and expanded views as they are"""
    call = [replace(x, profile="full") if x.dtype == "int32" else x for x in call]  # as in TELLING
    assert_close(submission.add(*call), expected(*call))


@points(4, kind="structure", handout="possibly no elements at all")
@given(call=calls(ADD, sizes={"...": [0, 1, 3], "N": 0}, layouts=PLAIN, values=["ones"]))
def test_empty(submission, call):
    """Returns an empty tensor for empty ones"""
    assert_close(submission.add(*call), expected(*call))


@points(8, kind="memory", handout="the kernel still writes over what is not its own")
@given(call=ANY_VIEW)
def test_memory(submission, call):
    """Stays inside its tensors, writes its whole result, no races"""
    assert_memory_clean(submission.add(*call))


@points(4, kind="structure", handout="Inputs are never modified")
@given(call=ANY_VIEW)
def test_inputs_unmodified(submission, call):
    """Leaves its inputs as they were, and answers with a new tensor"""
    result = submission.add(*call)
    assert_inputs_unmodified(result)
    assert_close(result, expected(*call))


N = 1 << 25


@points(20, kind="speed", handout="0.9 times as fast as both earns all points")
def test_speed(submission):
    """Adds 33 million numbers about as fast as torch, on a GPU"""
    x, y = normal((N,), seed=1), normal((N,), seed=2)
    timed = submission.add.timed(x, y, against=torch.add, expected=expected)
    assert_speed(timed, at_least(0.9, "eager", some_from=0.6), at_least(0.9, "compiled", some_from=0.6))
