"""Checks of softmax: over the last dimension of [M, N], in three dtypes, in any layout, stable for any magnitude."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given

from gradekit import (
    FLOATS,
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

SOFTMAX = domain_of(__file__)["softmax"]
PLAIN = ("contiguous",)
FINITE = ("ones", "normal", "alternating", "spike")
AROUND_POWERS = [1, 2, 3, 127, 128, 129, 1000, 1023, 1024, 1025, 2047, 2049]
WIDE = [2500, 4097, 20_000, 32_767, 32_768]
ANY_VIEW = calls(SOFTMAX, sizes={"M": [1, 2, 7, 30], "N": [1, 32, 33, 300]}, values=["normal", "ties"])


def softmax(x):
    return torch.softmax(x, dim=-1)


def amplified(x):
    """exp(d) is off by |d| times as much as d = x - max(x) itself, for every right kernel."""
    distance = x.amax(dim=-1, keepdim=True) - x
    return softmax(x).mul_(distance.add_(1)).nan_to_num_(0.0)  # where d is -inf, the result is exactly 0


amplified.signed = True  # `reference` calls it with x as it is, not with |x|


def expected(x):
    return reference(softmax, x, scale=amplified)


@points(16, handout="It returns the softmax of x over its last dimension")
@given(call=calls(SOFTMAX, dtypes=["float32"], layouts=PLAIN, values=FINITE))
def test_contiguous_float32(submission, call):
    """Agrees with torch.softmax on contiguous float32 matrices"""
    assert_close(submission.softmax(*call), expected(*call))


@points(12, handout="a tile must be a power of two wide")
@given(
    call=calls(
        SOFTMAX,
        dtypes=["float32"],
        sizes={"M": [1, 2, 20, 70_000], "N": AROUND_POWERS},  # 70,000: more than a grid may have along y
        layouts=PLAIN,
        values=["normal", "integers", "grid", "positive"],
        how={"at_most": 1 << 18},
    )
)
def test_boundary_sizes(submission, call):
    """Is right for rows around a power of two"""
    assert_close(submission.softmax(*call), expected(*call))


@points(8, handout="N is 1 to 32768")
@given(
    call=calls(
        SOFTMAX, sizes={"M": [1, 3], "N": WIDE}, layouts=PLAIN, values=["normal", "spike", "ones"], how={"at_most": 1 << 17}
    )
)
def test_wide_rows(submission, call):
    """Is right for rows of up to 32768 columns"""
    assert_close(submission.softmax(*call), expected(*call))


@points(12, handout="computed in float32, rounded once")
@pytest.mark.parametrize("dtype", FLOATS)
@given(call=calls(SOFTMAX, dtypes=["float32"], sizes={"M": [1, 2, 30], "N": (1, 1100)}, layouts=PLAIN, values=FINITE))
def test_every_dtype(submission, dtype, call):
    """Takes float32, float16 and bfloat16, and keeps the dtype"""
    x = replace(call[0], dtype=dtype)
    assert_close(submission.softmax(x), expected(x))


@points(12, handout="It has two strides; use both")
@given(call=ANY_VIEW)
def test_any_stride_and_offset(submission, call):
    """Reads transposed, sliced and expanded views as they are"""
    assert_close(submission.softmax(*call), expected(*call))


EXTREME = ("large", "negative", "mixed", "subnormal", "zeros", "between:-104:-40", "risen")


@points(4, handout="So are magnitudes up to the dtype's maximum")
@given(call=calls(SOFTMAX, sizes={"M": [1, 20], "N": [1, 2, 33, 64, 300]}, layouts=PLAIN, values=EXTREME))
def test_extreme_values(submission, call):
    """Stays right for magnitudes up to the dtype's maximum"""
    assert_close(submission.softmax(*call), expected(*call))


INFINITE = ("neg_inf_first", "neg_inf", "neg_inf_runs")


@points(4, handout="Entries of -inf are legal")
@given(call=calls(SOFTMAX, sizes={"M": [1, 5], "N": [1, 2, 33, 128, 1025, 32_768]}, layouts=PLAIN, values=INFINITE))
def test_minus_infinity(submission, call):
    """Gives -inf the weight 0, also where a row begins with it"""
    assert_close(submission.softmax(*call), expected(*call))


@points(8, kind="memory", handout="Think about the 24 elements that do not exist")
@given(call=ANY_VIEW)
def test_memory(submission, call):
    """Stays inside its tensors, writes its whole result, no races"""
    assert_memory_clean(submission.softmax(*call))


@points(4, kind="structure", handout="The input is never modified")
@given(call=ANY_VIEW)
def test_inputs_unmodified(submission, call):
    """Leaves its input as it was, and answers with a new tensor"""
    result = submission.softmax(*call)
    assert_inputs_unmodified(result)
    assert_close(result, expected(*call))


@points(20, kind="speed", handout="As fast as eager torch and 0.85 times as fast as compiled")
@pytest.mark.parametrize("shape", [(8192, 4096), (32768, 1000)], ids=["8192x4096", "32768x1000"])
def test_speed(submission, shape):
    """Is as fast as torch, on a GPU"""
    timed = submission.softmax.timed(normal(shape), against=softmax, expected=expected)
    assert_speed(timed, at_least(1.0, "eager", some_from=0.5), at_least(0.85, "compiled", some_from=0.5))
