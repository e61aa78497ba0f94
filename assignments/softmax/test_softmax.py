"""Checks of softmax: over the last dimension of [M, N], in three dtypes, in any layout, stable for any magnitude."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gradekit import (
    FLOATS,
    assert_close,
    assert_inputs_unmodified,
    assert_memory_clean,
    assert_speed,
    at_least,
    matrices,
    normal,
    points,
    reference,
)

PLAIN = ("contiguous",)
AROUND_POWERS = st.sampled_from([1, 2, 3, 127, 128, 129, 1000, 1023, 1024, 1025, 2047, 2049])
WIDE = st.sampled_from([2500, 4097, 20_000, 32_767, 32_768])


def softmax(x):
    return torch.softmax(x, dim=-1)


def amplified(x):
    """exp(d) is off by |d| times as much as d = x - max(x) itself, for every right kernel."""
    distance = x.amax(dim=-1, keepdim=True) - x
    return (softmax(x) * (1 + distance)).nan_to_num(0.0)  # where d is -inf, the result is exactly 0


amplified.signed = True  # `reference` calls it with x as it is, not with |x|


def expected(x):
    return reference(softmax, x, scale=amplified)


@points(16)
@given(x=matrices(dtypes=["float32"], rows=(1, 60), layouts=PLAIN))
def test_contiguous_float32(submission, x):
    """Agrees with torch.softmax on contiguous float32 matrices"""
    assert_close(submission.softmax(x), expected(x))


@points(12)
@given(x=AROUND_POWERS.flatmap(lambda cols: matrices(dtypes=["float32"], rows=(1, 20), cols=cols, layouts=PLAIN)))
def test_boundary_sizes(submission, x):
    """Is right for rows around a power of two"""
    assert_close(submission.softmax(x), expected(x))


@points(8)
@settings(max_examples=20)
@given(x=WIDE.flatmap(lambda cols: matrices(rows=(1, 3), cols=cols, layouts=PLAIN)))
def test_wide_rows(submission, x):
    """Is right for rows of up to 32768 columns"""
    assert_close(submission.softmax(x), expected(x))


@points(12)
@pytest.mark.parametrize("dtype", FLOATS)
@given(x=matrices(dtypes=["float32"], rows=(1, 30), layouts=PLAIN))
def test_every_dtype(submission, dtype, x):
    """Takes float32, float16 and bfloat16, and keeps the dtype"""
    x = replace(x, dtype=dtype)
    assert_close(submission.softmax(x), expected(x))


@points(12)
@given(x=matrices(rows=(1, 30), cols=(1, 300)))
def test_any_stride_and_offset(submission, x):
    """Reads transposed, sliced and expanded views as they are"""
    assert_close(submission.softmax(x), expected(x))


@points(4)
@given(x=matrices(rows=(1, 20), cols=(1, 300), layouts=PLAIN, profiles=["large", "mixed"]))
def test_extreme_values(submission, x):
    """Stays right for magnitudes up to the dtype's maximum"""
    assert_close(submission.softmax(x), expected(x))


@points(4)
@given(x=matrices(rows=(1, 5), cols=(1, 5000), layouts=PLAIN, profiles=["neg_inf_first", "neg_inf"]))
def test_minus_infinity(submission, x):
    """Gives -inf the weight 0, also where a row begins with it"""
    assert_close(submission.softmax(x), expected(x))


@points(8, kind="memory")
@given(x=matrices(rows=(1, 30), cols=(1, 300)))
def test_memory(submission, x):
    """Stays inside its tensors, writes each element exactly once"""
    assert_memory_clean(submission.softmax(x))


@points(4, kind="structure")
@given(x=matrices(rows=(1, 30), cols=(1, 300), layouts=PLAIN))
def test_inputs_unmodified(submission, x):
    """Leaves its input as it was, and answers with a new tensor"""
    result = submission.softmax(x)
    assert_inputs_unmodified(result)
    assert_close(result, expected(x))


@points(20, kind="speed")
@pytest.mark.parametrize("shape", [(8192, 4096), (32768, 1000)], ids=["8192x4096", "32768x1000"])
def test_speed(submission, shape):
    """Is as fast as torch, on a GPU"""
    timed = submission.softmax.timed(normal(shape), against=softmax, expected=expected)
    assert_speed(timed, at_least(1.0, "eager", some_from=0.5), at_least(0.85, "compiled", some_from=0.5))
