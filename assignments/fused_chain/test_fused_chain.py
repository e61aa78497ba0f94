"""Checks of fused_chain: gelu(x + bias) + residual, in its tanh form, in one launch and without scratch memory."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gradekit import (
    FLOATS,
    LAYOUTS,
    assert_allocates,
    assert_close,
    assert_inputs_unmodified,
    assert_launches,
    assert_memory_clean,
    assert_speed,
    at_least,
    like,
    matrices,
    normal,
    points,
    reference,
    shaped,
)

PLAIN = ("contiguous",)
AROUND_BLOCKS = st.sampled_from([1, 2, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025, 5000])
PROFILES = ("ones", "integers", "grid", "normal", "positive", "tiny", "mixed")


def chain(x, bias, residual):
    h = x + bias
    return 0.5 * h * (1 + torch.tanh(0.7978845608 * (h + 0.044715 * h**3))) + residual


def size_on_the_way(x, bias, residual):
    """How large the values are that a kernel rounds on its way to the result, given absolute values."""
    return x + bias + residual


def narrow_size_on_the_way(x, bias, residual):
    """A quarter: `reference` allows four roundings to the narrow dtype, and a right kernel makes one, of x + bias."""
    return size_on_the_way(x, bias, residual) / 4


def expected(x, bias, residual):
    scale = size_on_the_way if x.dtype == "float32" else narrow_size_on_the_way
    return reference(chain, x, bias, residual, scale=scale, steps="native", terms=1)


@st.composite
def chains(draw, dtypes=FLOATS, rows=(1, 40), cols=(1, 600), layouts=PLAIN, profiles=PROFILES):
    """x [M, N], bias [N] and residual [M, N] of one dtype."""
    x = draw(matrices(dtypes=dtypes, rows=rows, cols=cols, layouts=layouts, profiles=profiles, max_numel=1 << 16))
    others = ("normal",) if x.profile == "large" else PROFILES  # x + bias stays within the dtype's range
    bias = draw(shaped(x.shape[1:], dtypes=[x.dtype], layouts=layouts, profiles=others))
    return x, bias, draw(like(x, layouts=layouts, profiles=others))


@points(16)
@given(inputs=chains(dtypes=["float32"]))
def test_contiguous_float32(submission, inputs):
    """Computes the chain for contiguous float32 inputs"""
    assert_close(submission.fused_chain(*inputs), expected(*inputs))


@points(12)
@given(inputs=AROUND_BLOCKS.flatmap(lambda cols: chains(dtypes=["float32"], rows=(1, 130), cols=cols)))
def test_boundary_sizes(submission, inputs):
    """Is right around the size of a block, in both dimensions"""
    assert_close(submission.fused_chain(*inputs), expected(*inputs))


@points(12)
@pytest.mark.parametrize("dtype", FLOATS)
@given(inputs=chains(dtypes=["float32"]))
def test_every_dtype(submission, dtype, inputs):
    """Takes float32, float16 and bfloat16, and keeps the dtype"""
    inputs = [replace(tensor, dtype=dtype) for tensor in inputs]
    assert_close(submission.fused_chain(*inputs), expected(*inputs))


@points(12)
@given(inputs=chains(layouts=LAYOUTS, rows=(1, 20), cols=(1, 200)))
def test_any_stride_and_offset(submission, inputs):
    """Reads transposed, sliced and expanded views as they are"""
    assert_close(submission.fused_chain(*inputs), expected(*inputs))


@points(8)
@given(inputs=chains(profiles=["large", "mixed", "tiny"], cols=(1, 200)))
def test_extreme_values(submission, inputs):
    """Stays right for large x, where exp and h**3 overflow"""
    assert_close(submission.fused_chain(*inputs), expected(*inputs))


@points(8, kind="memory")
@given(inputs=chains(layouts=LAYOUTS, rows=(1, 20), cols=(1, 300)))
def test_memory(submission, inputs):
    """Stays inside its tensors, writes each element exactly once"""
    assert_memory_clean(submission.fused_chain(*inputs))


@points(12, kind="structure")
@given(inputs=chains(layouts=LAYOUTS, rows=(1, 20), cols=(1, 200)))
def test_one_launch_one_allocation(submission, inputs):
    """One launch, no memory but the result, inputs as they were"""
    result = submission.fused_chain(*inputs)
    assert_launches(result, at_most=1)
    assert_allocates(result, only_the_result=True)
    assert_inputs_unmodified(result)
    assert_close(result, expected(*inputs))


M, N = 8192, 4096


@points(20, kind="speed")
def test_speed(submission):
    """Is twice as fast as eager torch at [8192, 4096], on a GPU"""
    inputs = normal((M, N), seed=1), normal((N,), seed=2), normal((M, N), seed=3)
    timed = submission.fused_chain.timed(*inputs, against=chain, expected=expected)
    assert_launches(timed, at_most=1)
    assert_speed(timed, at_least(2.0, "eager", some_from=1.0), at_least(0.9, "compiled", some_from=0.5))
