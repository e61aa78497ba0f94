"""Checks of fused_chain: gelu(x + bias) + residual, in its tanh form, in one launch and without scratch memory."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given

from gradekit import (
    FLOATS,
    assert_allocates,
    assert_close,
    assert_inputs_unmodified,
    assert_launches,
    assert_memory_clean,
    assert_speed,
    at_least,
    calls,
    domain_of,
    normal,
    points,
    reference,
)

FUSED = domain_of(__file__)["fused_chain"]
PLAIN = ("contiguous",)
AROUND_BLOCKS = {"M": [1, 2, 130], "N": [1, 2, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025, 5000]}
KINDS = ("ones", "normal", "mixed", "tiny")
EXTREME = [
    ("large", "normal", "normal"),  # x + bias stays within the dtype's range
    ("negative", "normal", "normal"),
    ("mixed", "mixed", "mixed"),
    ("tiny", "tiny", "tiny"),
    ("zeros", "zeros", "zeros"),
    ("normal", "normal", "special"),
    ("special", "special", "special"),  # where gelu and residual are the largest numbers, their sum is infinite
]
ANY_VIEW = calls(FUSED, sizes={"M": [1, 2, 20], "N": [1, 32, 200]}, values=["normal"], how={"aliases": FUSED.aliases})


def gelu(h):
    return 0.5 * h * (1 + torch.tanh(0.7978845608 * (h + 0.044715 * h**3)))


def chain(x, bias, residual):
    return gelu(x + bias) + residual


NEAR_ZERO = 8.0
"""From -8 on down, gelu is less than float32 has beside 1."""


def errors(rounding, x, bias, residual):
    """What rounding x + bias changes, and float32 arithmetic: 1 + tanh cancels where h is a little below zero, and is
    exactly 0 where it is far below."""
    h = x + bias
    of_sum = torch.finfo(rounding.dtype).eps / 2 * h.abs()
    moved = torch.maximum((gelu(h + of_sum) - gelu(h)).abs(), (gelu(h - of_sum) - gelu(h)).abs())
    return moved + rounding.sum(h.abs().clamp(max=NEAR_ZERO) + gelu(h).abs() + residual.abs(), 1)


def expected(x, bias, residual):
    return reference(chain, x, bias, residual, bound=errors)


@points(16, handout="which is a bias, a GELU in its tanh form, and a residual connection")
@given(call=calls(FUSED, dtypes=["float32"], layouts=PLAIN, values=KINDS))
def test_contiguous_float32(submission, call):
    """Computes the chain for contiguous float32 inputs"""
    assert_close(submission.fused_chain(*call), expected(*call))


@points(12, handout="one tile of 1024 columns is right until N is 1025")
@given(
    call=calls(
        FUSED, dtypes=["float32"], sizes=AROUND_BLOCKS, layouts=PLAIN, values=["normal"],
        how={"at_most": 1 << 18, "aliases": FUSED.aliases},
    )
)  # fmt: skip
def test_boundary_sizes(submission, call):
    """Is right around the size of a block, in both dimensions"""
    assert_close(submission.fused_chain(*call), expected(*call))


@points(12, handout="all have the same dtype: float32, float16 or bfloat16")
@pytest.mark.parametrize("dtype", FLOATS)
@given(
    call=calls(FUSED, dtypes=["float32"], sizes={"M": [1, 2, 40], "N": [1, 64, 65, 600]}, layouts=PLAIN, values=KINDS)
)
def test_every_dtype(submission, dtype, call):
    """Takes float32, float16 and bfloat16, and keeps the dtype"""
    call = [replace(tensor, dtype=dtype) for tensor in call]
    assert_close(submission.fused_chain(*call), expected(*call))


@points(12, handout="Pass their strides to the kernel")
@given(call=ANY_VIEW)
def test_any_stride_and_offset(submission, call):
    """Reads transposed, sliced and expanded views as they are"""
    assert_close(submission.fused_chain(*call), expected(*call))


@points(8, handout="nothing else is promised")
@given(call=calls(FUSED, sizes={"M": [1, 20], "N": [1, 33, 200]}, layouts=PLAIN, values={"x bias residual": EXTREME}))
def test_extreme_values(submission, call):
    """Stays right for large x, where exp and h**3 overflow"""
    assert_close(submission.fused_chain(*call), expected(*call))


@points(8, kind="memory", handout="the last rows keep what torch.empty left there")
@given(call=ANY_VIEW)
def test_memory(submission, call):
    """Stays inside its tensors, writes its whole result, no races"""
    assert_memory_clean(submission.fused_chain(*call))


@points(12, kind="structure", handout="One launch, and nothing allocated but the result")
@given(call=ANY_VIEW)
def test_one_launch_one_allocation(submission, call):
    """One launch, no memory but the result, inputs as they were"""
    result = submission.fused_chain(*call)
    assert_launches(result, at_most=1)
    assert_allocates(result, only_the_result=True)
    assert_inputs_unmodified(result)
    assert_close(result, expected(*call))


M, N = 8192, 4096


@points(20, kind="speed", handout="Twice as fast as eager torch")
def test_speed(submission):
    """Is twice as fast as eager torch at [8192, 4096], on a GPU"""
    inputs = normal((M, N), seed=1), normal((N,), seed=2), normal((M, N), seed=3)
    timed = submission.fused_chain.timed(*inputs, against=chain, expected=expected)
    assert_launches(timed, at_most=1)
    assert_speed(timed, at_least(2.0, "eager", some_from=1.0), at_least(0.9, "compiled", some_from=0.5))
